// library MILLISECONDS: what MIT's GSSAPI does by itself with 1 MiB, on one core: bytes a second of
// gss_get_mic, gss_verify_mic, gss_wrap and gss_unwrap, as JSON. The environment names a client's
// and a server's keytab (KRB5_CLIENT_KTNAME, KRB5_KTNAME) of a realm with a KDC.
#include <gssapi/gssapi.h>
#include <gssapi/gssapi_krb5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SIZE (1 << 20)

static gss_ctx_id_t client = GSS_C_NO_CONTEXT, server = GSS_C_NO_CONTEXT;
static gss_buffer_desc message, mic, sealed;

static void must(const char* what, OM_uint32 major, OM_uint32 minor) {
  if (!GSS_ERROR(major)) return;
  OM_uint32 ignored, more = 0;
  gss_buffer_desc text = GSS_C_EMPTY_BUFFER;
  gss_display_status(&ignored, minor, GSS_C_MECH_CODE, gss_mech_krb5, &more, &text);
  fprintf(stderr, "library: %s: %.*s\n", what, (int)text.length, (char*)text.value);
  exit(1);
}

static void establish(void) {
  OM_uint32 major, minor;
  gss_buffer_desc host = {strlen("nfs@localhost"), "nfs@localhost"}, token = GSS_C_EMPTY_BUFFER,
                  answer = GSS_C_EMPTY_BUFFER, none = GSS_C_EMPTY_BUFFER;
  gss_name_t target;
  const OM_uint32 flags = GSS_C_MUTUAL_FLAG | GSS_C_INTEG_FLAG | GSS_C_CONF_FLAG;
  major = gss_import_name(&minor, &host, GSS_C_NT_HOSTBASED_SERVICE, &target);
  must("gss_import_name", major, minor);
  major = gss_init_sec_context(&minor, GSS_C_NO_CREDENTIAL, &client, target, gss_mech_krb5, flags,
                               0, NULL, NULL, NULL, &token, NULL, NULL);
  must("gss_init_sec_context", major, minor);
  major = gss_accept_sec_context(&minor, &server, GSS_C_NO_CREDENTIAL, &token, NULL, NULL, NULL,
                                 &answer, NULL, NULL, NULL);
  must("gss_accept_sec_context", major, minor);
  major = gss_init_sec_context(&minor, GSS_C_NO_CREDENTIAL, &client, target, gss_mech_krb5, flags,
                               0, NULL, &answer, NULL, &none, NULL, NULL);
  must("gss_init_sec_context", major, minor);
}

static void get_mic(void) {
  OM_uint32 minor, major;
  gss_buffer_desc made;
  major = gss_get_mic(&minor, server, GSS_C_QOP_DEFAULT, &message, &made);
  must("gss_get_mic", major, minor);
  gss_release_buffer(&minor, &mic);
  mic = made;
}

static void verify_mic(void) {
  OM_uint32 minor, major = gss_verify_mic(&minor, client, &message, &mic, NULL);
  must("gss_verify_mic", major, minor);
}

static void wrap(void) {
  OM_uint32 minor, major;
  gss_buffer_desc made;
  major = gss_wrap(&minor, server, 1, GSS_C_QOP_DEFAULT, &message, NULL, &made);
  must("gss_wrap", major, minor);
  gss_release_buffer(&minor, &sealed);
  sealed = made;
}

static void unwrap(void) {
  OM_uint32 minor, major;
  gss_buffer_desc plain;
  major = gss_unwrap(&minor, client, &sealed, &plain, NULL, NULL);
  must("gss_unwrap", major, minor);
  gss_release_buffer(&minor, &plain);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

// Bytes a second of processor time.
static double rate(void (*function)(void), double least) {
  function();
  const double start = seconds();
  double now;
  long done = 0;
  do {
    function();
    ++done;
  } while ((now = seconds()) - start < least);
  return done * (double)SIZE / (now - start);
}

int main(int count, char** words) {
  const double least = (count > 1 ? atoi(words[1]) : 300) * 1e-3;
  message.length = SIZE;
  message.value = malloc(SIZE);
  if (message.value == NULL) return 1;
  memset(message.value, 'x', SIZE);
  establish();
  const double mics = rate(get_mic, least), verified = rate(verify_mic, least),
               wrapped = rate(wrap, least), unwrapped = rate(unwrap, least);
  printf("{\"get_mic\": %.0f, \"verify_mic\": %.0f, \"wrap\": %.0f, \"unwrap\": %.0f}\n", mics,
         verified, wrapped, unwrapped);
  return 0;
}
