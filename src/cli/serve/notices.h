// What `stag serve` logs about itself. No peer can cause these, so unlike Reasons (base/reason.h)
// they are neither counted nor limited.
#pragma once

#include "cli/support/log.h"

namespace stag::cli::notices {

inline constexpr ReasonInfo kSettingChanged{"SettingChanged", Severity::Info,
                                            "a setting was changed while the server runs"};
inline constexpr ReasonInfo kSettingNeedsRestart{
    "SettingNeedsRestart", Severity::Warning,
    "a setting of the configuration file is not as the server has it, and takes effect when the "
    "server "
    "is started again, or taken over by 'stag serve --take-over'"};
inline constexpr ReasonInfo kClientUnknown{
    "ExportClientUnknown", Severity::Warning,
    "a client of an export is not known to the name service; the export is served, and the client "
    "admitted when it is known, or by the addresses that it had before"};
inline constexpr ReasonInfo kClientKnown{
    "ExportClientKnown", Severity::Warning,
    "a client of an export, which was not known before, has addresses now"};
inline constexpr ReasonInfo kCopySourceUnknown{"CopySourceUnknown", Severity::Warning,
                                               "a host of --copy-from is not known to the name "
                                               "service; nothing is copied from it until it is"};
inline constexpr ReasonInfo kCopySourceKnown{
    "CopySourceKnown", Severity::Warning,
    "a host of --copy-from, which was not known before, has addresses now"};
inline constexpr ReasonInfo kFolderClosed{
    "ExportFolderClosed", Severity::Warning,
    "the server's user, as whom everything is done, may not read the folder of an export; no "
    "client gets in"};
inline constexpr ReasonInfo kCaptureStopped{
    "CaptureStopped", Severity::Warning,
    "the file of --capture cannot be written; what goes over the connections is lost from now on"};
inline constexpr ReasonInfo kHandedOver{
    "HandedOver", Severity::Info,
    "another 'stag serve' has the listening sockets now; this one ends when its calls have"};
inline constexpr ReasonInfo kClientsAdopted{
    "ClientsAdopted", Severity::Warning,
    "the clients of a lost server were adopted: they may reclaim what they held, and nobody gets "
    "anything new meanwhile"};
inline constexpr ReasonInfo kRecordsAwaited{
    "RecordsAwaited", Severity::Warning,
    "a server has the records of version 4 clients in the Ceph cluster, or had them when it died; "
    "until it is known which, nobody else gets them"};
inline constexpr ReasonInfo kCallsUnfinished{
    "CallsUnfinished", Severity::Warning,
    "calls were still in progress when the time that --drain gives them was over"};
inline constexpr ReasonInfo kInheritedSocketUnused{
    "InheritedSocketUnused", Severity::Warning,
    "a socket that the service manager, or the server before this one, has passed fits no "
    "listener, and was closed"};
inline constexpr ReasonInfo kServiceManagerUnheard{
    "ServiceManagerUnheard", Severity::Warning,
    "the service manager cannot be told of the server's state"};

}  // namespace stag::cli::notices
