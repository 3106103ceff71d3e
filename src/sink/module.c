/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hk_version.h"
#include "sink/module.h"

enum {
    FOLDER_MAX = 1024
};

/* Where a build leaves it, from the folder of the program. */
static bool beside(const char *name, char out[PATH_MAX])
{
    char self[FOLDER_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len <= 0)
        return false;
    self[len] = '\0';
    const char *slash = strrchr(self, '/');
    if (!slash)
        return false;
    (void)snprintf(out, PATH_MAX, "%.*s/../sink/%s/sink-%s.so", (int)(slash - self), self, name, name);
    return access(out, R_OK) == 0;
}

static void find_module(const char *name, char out[PATH_MAX])
{
    const char *given = getenv("HIKYAKU_MODULES");
    if (given && *given)
        (void)snprintf(out, PATH_MAX, "%s/sink-%s.so", given, name);
    else if (!beside(name, out))
        (void)snprintf(out, PATH_MAX, HK_MODULE_DIR "/sink-%s.so", name);
}

static enum hk_code not_loaded(const char *name, const char *path, struct hk_err *err)
{
    const char *why = dlerror();
    if (access(path, F_OK) != 0)
        return hk_err_set(
            err, HK_UNSUPPORTED,
            "the module for %s is not installed (no %s): install hikyaku-%s, or build with -D%s=enabled",
            name, path, name, name);
    return hk_err_set(err, HK_UNSUPPORTED, "the module for %s cannot be loaded: %s", name, why ? why : path);
}

enum hk_code hk_module_load(const char *name, size_t layout, const void **out_calls, struct hk_err *err)
{
    char path[PATH_MAX];
    find_module(name, path);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const struct hk_module *module = handle ? dlsym(handle, HK_MODULE_SYMBOL) : NULL;
    if (!module)
        return not_loaded(name, path, err);
    if (strcmp(module->version, HK_VERSION) != 0 || module->layout != layout)
        return hk_err_set(
            err, HK_UNSUPPORTED,
            "the module for %s is of another build (%s, this is %s): install the same version of both", name,
            module->version, HK_VERSION);
    *out_calls = module->calls;
    return HK_OK;
}
