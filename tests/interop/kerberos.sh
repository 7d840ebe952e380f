# Sourced by scenarios behind lib.sh: a realm, STAG.TEST, with its KDC in the scenario's network, and what a guest needs of it.
# The server "host" and the guest "guest0" have keys, and the user games, whom every Debian knows as number 5, has the password "secret".
realm=$work/realm
export KRB5_CONFIG=$realm/krb5.conf KRB5_KDC_PROFILE=$realm/kdc.conf KRB5CCNAME=FILE:$realm/tickets KRB5RCACHEDIR=$realm
mkdir -p "$realm"
cat >"$KRB5_CONFIG" <<EOF
[libdefaults]
  default_realm = STAG.TEST
  dns_lookup_realm = false
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  STAG.TEST = {
    kdc = 10.77.0.1
  }
[domain_realm]
  host = STAG.TEST
  guest0 = STAG.TEST
EOF
cat >"$KRB5_KDC_PROFILE" <<EOF
[realms]
  STAG.TEST = {
    database_name = $realm/principal
    key_stash_file = $realm/stash
    acl_file = $realm/acl
    supported_enctypes = aes256-cts-hmac-sha1-96:normal
  }
[logging]
  kdc = FILE:$realm/kdc.log
EOF
# start_realm: the guest's network device is there.
start_realm() {
  {
    kdb5_util -r STAG.TEST create -s -P "of the master key" && kadmin.local -q "addprinc -pw secret games" &&
      kadmin.local -q "addprinc -randkey nfs/host" && kadmin.local -q "ktadd -k $realm/host.keytab nfs/host" &&
      kadmin.local -q "addprinc -randkey nfs/guest0" && kadmin.local -q "ktadd -k $realm/guest.keytab nfs/guest0"
  } >"$work/kadmin.log" 2>&1 || die "no realm can be made: $(cat "$work/kadmin.log")"
  krb5kdc -n >"$work/kdc.out" 2>&1 &
  pids+=("$!")
  until_true 60 grep -q 'commencing operation' "$realm/kdc.log" ||
    die "the KDC does not start: $(cat "$work/kdc.out" "$realm/kdc.log")"
}
# pack_keys: what `boot packed` gives the guest: krb5.conf and its keytab.
pack_keys() {
  local root=$work/keys
  mkdir -p "$root/etc" && cp "$KRB5_CONFIG" "$root/etc/" && cp "$realm/guest.keytab" "$root/etc/krb5.keytab"
  (cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/packed.gz"
}
