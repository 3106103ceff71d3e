/* SPDX-License-Identifier: Apache-2.0 */
/* Each door says in the log where it is. */
#include <string.h>
#include <unistd.h>

#include "admin/listen.h"
#include "admin/tls.h"
#include "daemon/doors.h"

static void log_text(struct hk_log *log, const char *event, const char *key, const char *value)
{
    struct hk_log_line line;
    hk_log_begin(&line, log, HK_LOG_INFO, event);
    hk_log_cstr(&line, key, value);
    hk_log_end(&line);
}

static bool is_wanted(const char *listen)
{
    return strcmp(listen, "none") != 0;
}

/* ---- copies ---- */

static enum hk_code no_memory(struct hk_err *err)
{
    return hk_err_set(err, HK_NOMEM, "out of memory for the admin server");
}

/* A list of texts; false: out of memory. */
static bool copy_texts(struct hk_pool *pool, const struct hk_conf_list *list, const char *const **out)
{
    const char **copy = hk_pool_alloc(pool, list->n + 1, sizeof *copy);
    for (size_t i = 0; copy && i < list->n; i++) {
        const char *text = ((const char *const *)list->items)[i];
        copy[i] = hk_pool_copy(pool, text, strlen(text));
        if (!copy[i])
            return false;
    }
    *out = copy;
    return copy != NULL;
}

static enum hk_code copy_gate(struct hk_doors *doors, const struct hk_conf_admin *admin, struct hk_gate *out,
                              struct hk_err *err)
{
    size_t size = admin->trusted_proxies.n * sizeof(struct hk_cidr);
    void *proxies = hk_pool_alloc(&doors->pool, admin->trusted_proxies.n + 1, sizeof(struct hk_cidr));
    if (!proxies || !copy_texts(&doors->pool, &admin->hosts, &out->hosts) ||
        !copy_texts(&doors->pool, &admin->cors, &out->cors))
        return no_memory(err);
    if (size > 0)
        memcpy(proxies, admin->trusted_proxies.items, size);
    out->proxies = proxies;
    out->n_proxies = admin->trusted_proxies.n;
    out->n_hosts = admin->hosts.n;
    out->n_cors = admin->cors.n;
    return HK_OK;
}

/* ---- TLS ---- */

/* On the server's thread. */
static void certificate_changed(void *arg, const char *error)
{
    struct hk_doors *doors = arg;
    struct hk_log_line line;
    hk_log_begin(&line, doors->log, error ? HK_LOG_ERROR : HK_LOG_INFO,
                 error ? "admin certificate not taken" : "admin certificate reloaded");
    if (error) {
        hk_log_cstr(&line, "error", error);
        hk_log_cstr(&line, "hint", "the older one stays in use");
    }
    hk_log_end(&line);
}

static enum hk_code open_tls(struct hk_doors *doors, const struct hk_conf_admin_tls *conf, struct hk_err *err)
{
    const struct hk_admin_tls_files files = {.cert = conf->cert,
                                             .key = conf->key,
                                             .client_ca = conf->client_ca,
                                             .changed = certificate_changed,
                                             .arg = doors};
    return conf->cert ? hk_admin_tls_open(&files, &doors->tls, err) : HK_OK;
}

/* ---- doors ---- */

static struct hk_admin_listener *add(struct hk_doors *doors, enum hk_gate_way way, enum hk_role role)
{
    struct hk_admin_listener *l = &doors->listeners[doors->n++];
    l->gate.way = way;
    l->role = role;
    return l;
}

static enum hk_gate_way way_of(const struct hk_conf_admin *admin)
{
    if (admin->tls.by == HK_CONF_ADMIN_TLS_TERMINATED)
        return HK_GATE_PROXIED;
    return admin->tls.cert ? HK_GATE_TLS : HK_GATE_LOCAL;
}

/* This machine needs no token, unless everybody does: then its metrics are open, as those of health_listen are. */
static enum hk_role role_of(const struct hk_conf_admin *admin, enum hk_gate_way way)
{
    if (way != HK_GATE_LOCAL)
        return HK_ROLE_NONE;
    return admin->auth == HK_CONF_ADMIN_AUTH_TOKENS ? HK_ROLE_METRICS : HK_ROLE_ADMIN;
}

/* The default port may be another relay's: several on one machine must just work. */
static enum hk_code open_admin(struct hk_doors *doors, const struct hk_conf_admin *admin, struct hk_err *err)
{
    char address[HK_LISTEN_TEXT_MAX];
    struct hk_log_line line;
    int fd = -1;
    if (!is_wanted(admin->listen))
        return HK_OK;
    enum hk_code rc = hk_listen(admin->listen, &fd, address, err);
    if (rc == HK_OK) {
        enum hk_gate_way way = way_of(admin);
        struct hk_admin_listener *l = add(doors, way, role_of(admin, way));
        l->fd = fd;
        l->tls = doors->tls;
        log_text(doors->log, "admin listening", "address", address);
        return copy_gate(doors, admin, &l->gate, err);
    }
    if (rc != HK_BUSY || admin->listen_given)
        return rc;
    hk_log_begin(&line, doors->log, HK_LOG_WARN, "continuing without an admin server");
    hk_log_cstr(&line, "error", err->message);
    hk_log_cstr(&line, "hint", "set admin.listen: port 0 takes any free one, none switches it off");
    hk_log_end(&line);
    return HK_OK;
}

static enum hk_code open_health(struct hk_doors *doors, const struct hk_conf_admin *admin, struct hk_err *err)
{
    char address[HK_LISTEN_TEXT_MAX];
    int fd = -1;
    if (!is_wanted(admin->health_listen))
        return HK_OK;
    enum hk_code rc = hk_listen(admin->health_listen, &fd, address, err);
    if (rc != HK_OK)
        return rc;
    add(doors, HK_GATE_OPEN, HK_ROLE_METRICS)->fd = fd;
    log_text(doors->log, "health listening", "address", address);
    return HK_OK;
}

static enum hk_code open_unix(struct hk_doors *doors, const struct hk_conf_admin *admin, struct hk_err *err)
{
    int fd = -1;
    if (!admin->unix_path)
        return HK_OK;
    char *path = hk_pool_copy(&doors->pool, admin->unix_path, strlen(admin->unix_path));
    if (!path)
        return no_memory(err);
    enum hk_code rc = hk_listen_unix(path, &fd, &doors->unix_lock, err);
    if (rc != HK_OK)
        return rc;
    doors->unix_path = path;
    struct hk_admin_listener *l = add(doors, HK_GATE_UNIX, HK_ROLE_ADMIN);
    l->fd = fd;
    log_text(doors->log, "admin listening", "path", path);
    return copy_gate(doors, admin, &l->gate, err);
}

enum hk_code hk_doors_open(struct hk_doors *doors, const struct hk_conf_admin *admin, struct hk_log *log,
                           struct hk_err *err)
{
    *doors = (struct hk_doors){.log = log, .unix_lock = -1};
    enum hk_code rc = open_tls(doors, &admin->tls, err);
    if (rc == HK_OK)
        rc = open_admin(doors, admin, err);
    if (rc == HK_OK)
        rc = open_health(doors, admin, err);
    if (rc == HK_OK)
        rc = open_unix(doors, admin, err);
    if (rc != HK_OK)
        hk_doors_shut(doors);
    return rc;
}

void hk_doors_shut(struct hk_doors *doors)
{
    while (doors->n > 0)
        (void)close(doors->listeners[--doors->n].fd);
    hk_doors_close(doors);
}

void hk_doors_close(struct hk_doors *doors)
{
    if (doors->unix_path)
        hk_listen_unix_end(doors->unix_path, doors->unix_lock);
    doors->unix_path = NULL;
    hk_admin_tls_close(doors->tls);
    doors->tls = NULL;
    hk_pool_fini(&doors->pool);
}

void hk_doors_reloaded(struct hk_doors *doors)
{
    if (doors->tls)
        hk_admin_tls_look(doors->tls);
}
