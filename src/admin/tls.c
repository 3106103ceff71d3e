/* SPDX-License-Identifier: Apache-2.0 */
/* Files are looked at when a client connects, not by a timer: a relay that nobody asks does nothing. Each session gets the credentials of
 * that moment; those of older connections live on with them, so that a renewal drops nobody. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "admin/tls.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    LOOK_MS = 1000,
    FILE_MAX = 1 << 20
};

const char hk_admin_tls_priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE";

enum {
    CERT,
    KEY,
    CLIENT_CA,
    N_FILES
};

/* Says whether a file is another one, without reading it. */
struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified, changed;
};

struct hk_tls_credentials {
    size_t refs; /* the server's thread's */
    bool wants_clients;
    gnutls_certificate_credentials_t own;
};

struct hk_admin_tls {
    char *paths[N_FILES]; /* NULL: none */
    struct stamp stamps[N_FILES];
    void (*changed)(void *arg, const char *error);
    void *arg;
    char *cert, *key; /* as they were read at first */
    struct hk_tls_credentials *now;
    int64_t looked_ms;
    bool complained; /* about the files as they are now, or were a moment ago: once will do */
    atomic_bool look;
};

void hk_tls_credentials_unref(struct hk_tls_credentials *c)
{
    if (!c || --c->refs > 0)
        return;
    gnutls_certificate_free_credentials(c->own);
    hk_mem_free(c);
}

/* ---- files ---- */

static enum hk_code read_file(const char *path, struct hk_buf *out, struct stamp *out_stamp,
                              struct hk_err *err)
{
    struct stat st;
    char bytes[4096];
    ssize_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int why = errno;
        if (fd >= 0)
            (void)close(fd);
        return hk_err_set(err, HK_INVALID, "cannot read %s: %s", path, strerror(why));
    }
    do {
        n = read(fd, bytes, sizeof bytes);
        if (n > 0)
            (void)hk_buf_add(out, bytes, (size_t)n);
    } while ((n > 0 && hk_buf_status(out) == HK_OK) || (n < 0 && errno == EINTR));
    int why = errno;
    (void)close(fd);
    if (n < 0)
        return hk_err_set(err, HK_INVALID, "cannot read %s: %s", path, strerror(why));
    if (hk_buf_status(out) != HK_OK)
        return hk_err_set(err, hk_buf_status(out), "%s is too large", path);
    *out_stamp = (struct stamp){st.st_dev, st.st_ino, st.st_size, st.st_mtim, st.st_ctim};
    return HK_OK;
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Symbolic links are followed, as for reading: a mounted secret changes by one that leads to another folder. */
static bool is_as_it_was(const char *path, const struct stamp *was)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == was->device && st.st_ino == was->inode &&
           st.st_size == was->size && same_time(st.st_mtim, was->modified) &&
           same_time(st.st_ctim, was->changed);
}

static bool have_changed(const struct hk_admin_tls *tls)
{
    for (int i = 0; i < N_FILES; i++) {
        if (tls->paths[i] && !is_as_it_was(tls->paths[i], &tls->stamps[i]))
            return true;
    }
    return false;
}

/* ---- credentials ---- */

static gnutls_datum_t datum_of(struct hk_buf *buf)
{
    return (gnutls_datum_t){.data = (unsigned char *)buf->data, .size = (unsigned)buf->len};
}

static enum hk_code fill(struct hk_admin_tls *tls, struct hk_tls_credentials *c, struct hk_buf files[N_FILES],
                         struct hk_err *err)
{
    gnutls_datum_t cert = datum_of(&files[CERT]), key = datum_of(&files[KEY]),
                   ca = datum_of(&files[CLIENT_CA]);
    int rc = gnutls_certificate_set_x509_key_mem(c->own, &cert, &key, GNUTLS_X509_FMT_PEM);
    if (rc < 0)
        return hk_err_set(err, HK_INVALID, "%s and %s are no certificate and its key: %s", tls->paths[CERT],
                          tls->paths[KEY], gnutls_strerror(rc));
    if (!tls->paths[CLIENT_CA])
        return HK_OK;
    rc = gnutls_certificate_set_x509_trust_mem(c->own, &ca, GNUTLS_X509_FMT_PEM);
    if (rc <= 0)
        return hk_err_set(err, HK_INVALID, "%s has no certificate in it", tls->paths[CLIENT_CA]);
    c->wants_clients = true;
    return HK_OK;
}

static enum hk_code make_credentials(struct hk_admin_tls *tls, struct hk_buf files[N_FILES],
                                     struct hk_tls_credentials **out, struct hk_err *err)
{
    struct hk_tls_credentials *c = hk_mem_zalloc(1, sizeof *c);
    if (!c || gnutls_certificate_allocate_credentials(&c->own) != GNUTLS_E_SUCCESS) {
        hk_mem_free(c);
        return hk_err_set(err, HK_NOMEM, "out of memory for a certificate");
    }
    c->refs = 1;
    enum hk_code rc = fill(tls, c, files, err);
    if (rc == HK_OK)
        *out = c;
    else
        hk_tls_credentials_unref(c);
    return rc;
}

/* A pair that is being replaced may not fit for a moment: the stamps say then that it changes again. */
static enum hk_code read_all(struct hk_admin_tls *tls, struct hk_buf files[N_FILES],
                             struct hk_tls_credentials **out, struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    for (int i = 0; i < N_FILES && rc == HK_OK; i++) {
        if (tls->paths[i])
            rc = read_file(tls->paths[i], &files[i], &tls->stamps[i], err);
    }
    return rc == HK_OK ? make_credentials(tls, files, out, err) : rc;
}

/* Overwritten first: one of them is a key. */
static void wipe(struct hk_buf files[N_FILES])
{
    for (int i = 0; i < N_FILES; i++) {
        if (files[i].data)
            gnutls_memset(files[i].data, 0, files[i].room);
        hk_buf_fini(&files[i]);
    }
}

static void reload(struct hk_admin_tls *tls)
{
    struct hk_buf files[N_FILES];
    struct hk_tls_credentials *fresh = NULL;
    struct hk_err err = {.code = HK_OK};
    for (int i = 0; i < N_FILES; i++)
        hk_buf_init(&files[i], FILE_MAX);
    enum hk_code rc = read_all(tls, files, &fresh, &err);
    wipe(files);
    if (rc == HK_OK && fresh) {
        hk_tls_credentials_unref(tls->now);
        tls->now = fresh;
    }
    bool told = rc != HK_OK && tls->complained;
    tls->complained = rc != HK_OK;
    if (tls->changed && !told)
        tls->changed(tls->arg, rc == HK_OK ? NULL : err.message);
}

/* ---- for the server ---- */

static bool copy_paths(struct hk_admin_tls *tls, const struct hk_admin_tls_files *files)
{
    const char *const from[N_FILES] = {
        [CERT] = files->cert, [KEY] = files->key, [CLIENT_CA] = files->client_ca};
    for (int i = 0; i < N_FILES; i++) {
        tls->paths[i] = from[i] ? hk_mem_strdup(from[i]) : NULL;
        if (from[i] && !tls->paths[i])
            return false;
    }
    return true;
}

enum hk_code hk_admin_tls_open(const struct hk_admin_tls_files *files, struct hk_admin_tls **out_tls,
                               struct hk_err *err)
{
    struct hk_buf read[N_FILES];
    struct hk_admin_tls *tls = hk_mem_zalloc(1, sizeof *tls);
    if (!tls)
        return hk_err_set(err, HK_NOMEM, "out of memory for a certificate");
    for (int i = 0; i < N_FILES; i++)
        hk_buf_init(&read[i], FILE_MAX);
    tls->changed = files->changed;
    tls->arg = files->arg;
    enum hk_code rc = copy_paths(tls, files) ? read_all(tls, read, &tls->now, err)
                                             : hk_err_set(err, HK_NOMEM, "out of memory for a certificate");
    if (rc == HK_OK) {
        tls->cert = hk_mem_strdup(hk_buf_cstr(&read[CERT]));
        tls->key = hk_mem_strdup(hk_buf_cstr(&read[KEY]));
        if (!tls->cert || !tls->key)
            rc = hk_err_set(err, HK_NOMEM, "out of memory for a certificate");
    }
    wipe(read);
    if (rc == HK_OK)
        *out_tls = tls;
    else
        hk_admin_tls_close(tls);
    return rc;
}

void hk_admin_tls_close(struct hk_admin_tls *tls)
{
    if (!tls)
        return;
    for (int i = 0; i < N_FILES; i++)
        hk_mem_free(tls->paths[i]);
    if (tls->key)
        gnutls_memset(tls->key, 0, strlen(tls->key));
    hk_mem_free(tls->cert);
    hk_mem_free(tls->key);
    hk_tls_credentials_unref(tls->now);
    hk_mem_free(tls);
}

void hk_admin_tls_look(struct hk_admin_tls *tls)
{
    tls->look = true;
}

const char *hk_admin_tls_cert(const struct hk_admin_tls *tls)
{
    return tls->cert;
}

const char *hk_admin_tls_key(const struct hk_admin_tls *tls)
{
    return tls->key;
}

struct hk_tls_credentials *hk_admin_tls_greet(struct hk_admin_tls *tls, void *session, int64_t now_ms)
{
    /* GnuTLS keeps the pointer */
    static unsigned char client[] = GNUTLS_KP_TLS_WWW_CLIENT;
    static gnutls_typed_vdata_st purpose[] = {{.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = client, .size = 0}};
    if (atomic_exchange(&tls->look, false) || now_ms - tls->looked_ms >= LOOK_MS) {
        tls->looked_ms = now_ms;
        if (have_changed(tls))
            reload(tls);
    }
    if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->now->own) != GNUTLS_E_SUCCESS)
        return NULL;
    if (tls->now->wants_clients) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
        gnutls_session_set_verify_cert2(session, purpose, 1, 0);
    }
    tls->now->refs++;
    return tls->now;
}
