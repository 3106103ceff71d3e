/* SPDX-License-Identifier: Apache-2.0 */
/* A key is 32 bytes as base64, in a file, a variable, a credential of systemd or what a program prints. No message holds any of it. */
#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/keys.h"
#include "config/tables.h"
#include "run/program.h"

enum {
    TEXT_MAX = 1024, /* of a key with blanks around it */
    RELOAD_MS = 2000 /* that a reload waits for commands: messages wait with it */
};

/* What fetches: lives in the configuration's arena. */
struct sources {
    const struct hk_conf_seal_key *keys;
    const struct hk_config_env *env;
    bool no_programs; /* whoever asks cannot wait for one */
    const struct hk_key_asker *asker;
    uint64_t wait_ms; /* for its answer */
};

static enum hk_code read_file(const struct hk_config_env *env, const char *path, struct hk_buf *out,
                              struct hk_err *err)
{
    if (!env->read_file)
        return hk_err_set(err, HK_UNSUPPORTED, "no file can be read here");
    return env->read_file(env->arg, path, out, err);
}

static enum hk_code read_variable(const struct hk_config_env *env, const char *name, struct hk_buf *out,
                                  struct hk_err *err)
{
    const char *value = env->get ? env->get(env->arg, name) : NULL;
    if (!value)
        return hk_err_set(err, HK_NOTFOUND, "the variable %s is not set", name);
    return hk_buf_adds(out, value);
}

static enum hk_code read_credential(const struct hk_config_env *env, const char *name, struct hk_buf *out,
                                    struct hk_err *err)
{
    const char *folder = env->get ? env->get(env->arg, "CREDENTIALS_DIRECTORY") : NULL;
    struct hk_buf path;
    if (!folder || !folder[0])
        return hk_err_set(err, HK_NOTFOUND, "systemd gave this process no credentials");
    hk_buf_init(&path, 4096);
    (void)hk_buf_addf(&path, "%s/%s", folder, name);
    enum hk_code rc = hk_buf_status(&path) == HK_OK ? read_file(env, hk_buf_cstr(&path), out, err)
                                                    : hk_err_set(err, HK_TOOBIG, "its path is too long");
    hk_buf_fini(&path);
    return rc;
}

static enum hk_code run_program(const struct hk_config_env *env, const struct hk_conf_list *command,
                                struct hk_buf *out, struct hk_err *err)
{
    const char *argv[HK_PROGRAM_WORDS_MAX + 1] = {NULL};
    const char *const *words = command->items;
    for (size_t i = 0; i < command->n && i < HK_PROGRAM_WORDS_MAX; i++)
        argv[i] = words[i];
    if (!env->run)
        return hk_err_set(err, HK_UNSUPPORTED, "no program can be run here");
    return env->run(argv, out, err);
}

static enum hk_code read_text(const struct sources *from, const struct hk_conf_seal_key *key,
                              struct hk_buf *out, struct hk_err *err)
{
    if (key->file)
        return read_file(from->env, key->file, out, err);
    if (key->env)
        return read_variable(from->env, key->env, out, err);
    if (key->credential)
        return read_credential(from->env, key->credential, out, err);
    if (from->asker && from->asker->ask)
        return from->asker->ask(from->asker->arg, key->id, from->wait_ms, out, err);
    if (from->no_programs)
        return hk_err_set(err, HK_NOTFOUND,
                          "it comes from a command, which this relay cannot run any more: restart the relay");
    return run_program(from->env, &key->command, out, err);
}

static enum hk_code decode(struct hk_str text, unsigned char out[HK_KEY_BYTES], struct hk_err *err)
{
    unsigned char bytes[TEXT_MAX];
    size_t n = 0;
    bool good = hk_base64_decode(text, HK_BASE64_LINES, bytes, sizeof bytes, &n) && n == HK_KEY_BYTES;
    if (good)
        memcpy(out, bytes, HK_KEY_BYTES);
    hk_mem_wipe(bytes, sizeof bytes);
    return good ? HK_OK
                : hk_err_set(err, HK_INVALID,
                             "it is not 32 bytes in base64: openssl rand -base64 32 makes a key");
}

static enum hk_code fetch(void *arg, size_t i, unsigned char out[HK_KEY_BYTES], struct hk_err *err)
{
    const struct sources *from = arg;
    struct hk_buf text;
    hk_buf_init(&text, TEXT_MAX);
    enum hk_code rc = read_text(from, &from->keys[i], &text, err);
    if (rc == HK_OK)
        rc = decode(hk_buf_str(&text), out, err);
    if (text.data)
        hk_mem_wipe(text.data, text.room);
    hk_buf_fini(&text);
    return rc;
}

enum hk_code hk_config_make_keys(struct hk_config *config, const struct hk_config_env *env,
                                 struct hk_err *err)
{
    const struct hk_conf_seal_key *items = config->seal.keys.items;
    size_t n = config->seal.keys.n;
    if (!n)
        return HK_OK;
    const char **ids = hk_pool_alloc(&config->arena, n, sizeof *ids);
    struct sources *from = hk_pool_alloc(&config->arena, 1, sizeof *from);
    if (!ids || !from)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    *from = (struct sources){.keys = items, .env = env};
    for (size_t i = 0; i < n; i++)
        ids[i] = items[i].id;
    config->key_sources = from;
    const struct hk_keyring_options options = {
        .store = config->seal.store, .ids = ids, .n = n, .fetch = fetch, .arg = from};
    return hk_keyring_new(&options, &config->keys, err);
}

bool hk_config_runs_for_keys(const struct hk_config *config)
{
    const struct hk_conf_seal_key *keys = config->seal.keys.items;
    size_t i = 0;
    while (i < config->seal.keys.n && !keys[i].command.n)
        i++;
    return i < config->seal.keys.n;
}

enum hk_code hk_config_fetch_keys(struct hk_config *config, const struct hk_config *older,
                                  const struct hk_key_asker *asker, struct hk_err *err)
{
    struct sources *from = config->key_sources;
    if (!config->keys)
        return HK_OK;
    from->asker = older ? asker : NULL;
    from->wait_ms = RELOAD_MS / config->seal.keys.n;
    enum hk_code rc = hk_keyring_fetch(config->keys, err);
    from->no_programs = true;
    from->asker = asker;
    from->wait_ms = 0;
    if (rc == HK_OK || !older || !older->keys)
        return rc;
    hk_keyring_inherit(config->keys, older->keys);
    return hk_keyring_fetch(config->keys, err);
}
