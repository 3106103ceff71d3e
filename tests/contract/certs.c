/* SPDX-License-Identifier: Apache-2.0 */
/* Makes certificates with libcrypto. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "certs.h"

static void must(int ok, const char *what)
{
    if (!ok) {
        (void)fprintf(stderr, "certs: %s\n", what);
        abort();
    }
}

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    must(ext && X509_add_ext(cert, ext, -1), "extension");
    X509_EXTENSION_free(ext);
}

static X509 *make(EVP_PKEY *key, X509 *issuer, EVP_PKEY *issuer_key, const char *name, const char *alt,
                  long from_s, long until_s)
{
    static long serial = 1;
    X509 *cert = X509_new();
    must(cert != NULL, "X509_new");
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(cert), from_s);
    X509_gmtime_adj(X509_getm_notAfter(cert), until_s);
    X509_set_pubkey(cert, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC, (const unsigned char *)name,
                               -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(issuer ? issuer : cert));
    add_extension(cert, issuer ? issuer : cert, NID_basic_constraints, alt ? "CA:FALSE" : "critical,CA:TRUE");
    if (alt)
        add_extension(cert, issuer ? issuer : cert, NID_subject_alt_name, alt);
    must(X509_sign(cert, issuer_key, EVP_sha256()) > 0, "sign");
    return cert;
}

static void write_cert(const char *dir, const char *name, char *path, size_t room, X509 *cert)
{
    (void)snprintf(path, room, "%s/%s.pem", dir, name);
    FILE *f = fopen(path, "w");
    must(f && PEM_write_X509(f, cert), "write");
    (void)fclose(f);
    X509_free(cert);
}

static void write_key(const char *dir, const char *name, char *path, size_t room, EVP_PKEY *key)
{
    (void)snprintf(path, room, "%s/%s.pem", dir, name);
    FILE *f = fopen(path, "w");
    must(f && PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL), "key");
    (void)fclose(f);
}

static void make_odd_ones(struct certs *c, X509 *ca, EVP_PKEY *ca_key, EVP_PKEY *key, const char *here)
{
    const long day = 86400;
    EVP_PKEY *middle_key = EVP_EC_gen("P-256"), *weak_key = EVP_RSA_gen(1024);
    must(middle_key && weak_key, "keys");
    X509 *middle = make(middle_key, ca, ca_key, "an authority between", NULL, -day, 5 * day);
    X509 *leaf = make(key, ca, ca_key, "leaf", "DNS:leaf.example", -day, 5 * day);
    write_cert(c->dir, "no_chain", c->no_chain, sizeof c->no_chain,
               make(key, middle, middle_key, "localhost", here, -day, 5 * day));
    write_cert(c->dir, "by_leaf", c->by_leaf, sizeof c->by_leaf,
               make(key, leaf, key, "localhost", here, -day, 5 * day));
    FILE *f = fopen(c->by_leaf, "a"); /* with its chain, so that only the missing right is wrong */
    must(f && PEM_write_X509(f, leaf), "chain");
    (void)fclose(f);
    write_cert(c->dir, "weak", c->weak, sizeof c->weak,
               make(weak_key, ca, ca_key, "localhost", here, -day, 5 * day));
    write_key(c->dir, "weak_key", c->weak_key, sizeof c->weak_key, weak_key);
    X509_free(middle);
    X509_free(leaf);
    EVP_PKEY_free(middle_key);
    EVP_PKEY_free(weak_key);
}

void certs_make(struct certs *c)
{
    const long day = 86400;
    static const char here[] = "DNS:localhost,IP:127.0.0.1";
    (void)snprintf(c->dir, sizeof c->dir, "/tmp/hk-certs-XXXXXX");
    must(mkdtemp(c->dir) != NULL, "mkdtemp");
    EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *other_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
    must(ca_key && other_key && key, "keys");
    write_key(c->dir, "key", c->key, sizeof c->key, key);
    X509 *ca = make(ca_key, NULL, ca_key, "hikyaku test CA", NULL, -day, 10 * day);
    write_cert(c->dir, "good", c->good, sizeof c->good,
               make(key, ca, ca_key, "localhost", here, -day, 5 * day));
    write_cert(c->dir, "expired", c->expired, sizeof c->expired,
               make(key, ca, ca_key, "localhost", here, -5 * day, -day));
    write_cert(c->dir, "early", c->early, sizeof c->early,
               make(key, ca, ca_key, "localhost", here, day, 5 * day));
    write_cert(c->dir, "wrong_host", c->wrong_host, sizeof c->wrong_host,
               make(key, ca, ca_key, "elsewhere.example", "DNS:elsewhere.example", -day, 5 * day));
    write_cert(c->dir, "self_signed", c->self_signed, sizeof c->self_signed,
               make(key, NULL, key, "localhost", here, -day, 5 * day));
    make_odd_ones(c, ca, ca_key, key, here);
    write_cert(c->dir, "ca", c->ca, sizeof c->ca, ca);
    write_cert(c->dir, "other_ca", c->other_ca, sizeof c->other_ca,
               make(other_key, NULL, other_key, "another CA", NULL, -day, 10 * day));
    EVP_PKEY_free(ca_key);
    EVP_PKEY_free(other_key);
    EVP_PKEY_free(key);
}

void certs_remove(struct certs *c)
{
    const char *const files[] = {c->ca,       c->other_ca, c->key,        c->good,
                                 c->expired,  c->early,    c->wrong_host, c->self_signed,
                                 c->no_chain, c->by_leaf,  c->weak,       c->weak_key};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        (void)unlink(files[i]);
    (void)rmdir(c->dir);
}
