/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for tests: an authority of our own, and what it signed well or badly. */
#ifndef HK_TESTS_CERTS_H
#define HK_TESTS_CERTS_H

struct certs {
    char dir[64];
    char ca[96], other_ca[96];
    char key[96];                          /* one for all */
    char good[96], expired[96], early[96]; /* for localhost and 127.0.0.1, by `ca` */
    char wrong_host[96], self_signed[96];  /* for elsewhere.example; by itself */
    char no_chain[96];                     /* by an authority below `ca` that nobody sends */
    char by_leaf[96];                      /* by `good`, which is no authority */
    char weak[96], weak_key[96];           /* RSA of 1024 bits */
};

void certs_make(struct certs *certs);
void certs_remove(struct certs *certs);

#endif
