// The contract suite: what every FileSystem keeps. A backend's test program includes this and
// instantiates Contract and AclContract with its factories.
#pragma once

#include "testing/vfs/contract_acl.h"
#include "testing/vfs/contract_data.h"
#include "testing/vfs/contract_list.h"
#include "testing/vfs/contract_names.h"
#include "testing/vfs/contract_permissions.h"
