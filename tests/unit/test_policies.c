/* SPDX-License-Identifier: Apache-2.0 */
/* Policies by name: presets, those of a file, those made in code, and what belongs to whom. */
#include <stdlib.h>
#include <unistd.h>

#include <hikyaku/policies.h>

#include "config_env.h"

static struct hk_policies *new_set(void)
{
    struct hk_policies *set = NULL;
    assert_int_equal(hk_policies_new(&set, NULL), HK_OK);
    return set;
}

static struct hk_policy *new_policy(const char *name, uint32_t max_attempts)
{
    struct hk_policy *policy = NULL;
    assert_int_equal(hk_policy_new("standard", &policy, NULL), HK_OK);
    assert_int_equal(hk_policy_set_name(policy, name, NULL), HK_OK);
    struct hk_limits limits = *hk_policy_limits(policy);
    limits.max_attempts = max_attempts;
    assert_int_equal(hk_policy_set_limits(policy, &limits, NULL), HK_OK);
    return policy;
}

static enum hk_code add(struct hk_policies *set, const char *name, uint32_t max_attempts)
{
    struct hk_policy *policy = new_policy(name, max_attempts);
    enum hk_code rc = hk_policies_add(set, policy, NULL);
    hk_policy_free(policy);
    return rc;
}

static size_t count(const struct hk_policies *set)
{
    size_t n = 0;
    while (hk_policies_at(set, n))
        n++;
    return n;
}

/* ---- files ---- */

static char path[] = "/tmp/hk-policies-XXXXXX";

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static char reported[4096];

static void note(void *arg, const char *line)
{
    (void)arg;
    size_t len = strlen(reported);
    assert_int_equal(strncmp(line, path, strlen(path)), 0);
    (void)snprintf(reported + len, sizeof reported - len, "%s\n", line + strlen(path));
}

static enum hk_code load(struct hk_policies *set, const char *text, struct hk_err *err)
{
    write_file(text);
    reported[0] = '\0';
    return hk_policies_load(set, path, note, NULL, err);
}

/* ---- the set ---- */

static void test_a_new_set_holds_the_presets_and_standard_is_the_default(void **state)
{
    (void)state;
    struct hk_policies *set = new_set();
    for (size_t i = 0; hk_preset_name(i); i++) {
        assert_string_equal(hk_policy_name(hk_policies_at(set, i)), hk_preset_name(i));
        assert_ptr_equal(hk_policies_get(set, hk_preset_name(i)), hk_policies_at(set, i));
    }
    assert_string_equal(hk_policy_name(hk_policies_get(set, NULL)), "standard");
    assert_string_equal(hk_policy_name(hk_policies_get(set, "")), "standard");
    assert_null(hk_policies_get(set, "nobody"));
    assert_null(hk_policies_at(set, SIZE_MAX));
    hk_policies_free(set);
    hk_policies_free(NULL);
}

static void test_a_copy_is_added_once_under_its_name(void **state)
{
    (void)state;
    struct hk_policies *set = new_set();
    size_t presets = count(set);
    struct hk_policy *policy = new_policy("mine", 3);
    assert_int_equal(hk_policies_add(set, policy, NULL), HK_OK);
    assert_ptr_not_equal(hk_policies_get(set, "mine"), policy);
    hk_policy_free(policy);
    assert_int_equal(hk_policy_limits(hk_policies_get(set, "mine"))->max_attempts, 3);
    struct hk_err err = {.code = HK_OK};
    policy = new_policy("mine", 4);
    assert_int_equal(hk_policies_add(set, policy, &err), HK_EXISTS);
    assert_string_equal(err.message, "there is a policy \"mine\" already");
    hk_policy_free(policy);
    assert_int_equal(hk_policy_limits(hk_policies_get(set, "mine"))->max_attempts, 3);
    assert_int_equal(count(set), presets + 1);
    hk_policies_free(set);
}

static void test_a_preset_may_be_replaced_once_and_keeps_its_place(void **state)
{
    (void)state;
    struct hk_policies *set = new_set();
    size_t presets = count(set);
    assert_int_equal(add(set, "standard", 3), HK_OK);
    assert_int_equal(count(set), presets);
    assert_int_equal(hk_policy_limits(hk_policies_at(set, 0))->max_attempts, 3);
    assert_int_equal(hk_policy_limits(hk_policies_get(set, NULL))->max_attempts, 3); /* still the default */
    assert_int_equal(add(set, "standard", 4), HK_EXISTS);
    hk_policies_free(set);
}

static void test_a_policy_that_never_ends_is_not_added(void **state)
{
    (void)state;
    struct hk_policies *set = new_set();
    struct hk_policy *policy = new_policy("endless", 0);
    struct hk_limits limits = *hk_policy_limits(policy);
    limits.max_elapsed_ms = 0;
    assert_int_equal(hk_policy_set_limits(policy, &limits, NULL), HK_OK);
    assert_int_equal(hk_policies_add(set, policy, NULL), HK_RANGE);
    assert_null(hk_policies_get(set, "endless"));
    hk_policy_free(policy);
    hk_policies_free(set);
}

static void test_the_default_must_exist_and_survives_growth(void **state)
{
    (void)state;
    struct hk_policies *set = new_set();
    struct hk_err err = {.code = HK_OK};
    char name[16];
    assert_int_equal(hk_policies_set_default(set, "p0", &err), HK_NOTFOUND);
    assert_string_equal(err.message, "there is no policy \"p0\"");
    for (uint32_t i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "p%u", (unsigned)i);
        assert_int_equal(add(set, name, i + 1), HK_OK);
        if (i == 0)
            assert_int_equal(hk_policies_set_default(set, "p0", NULL), HK_OK);
    }
    assert_string_equal(hk_policy_name(hk_policies_get(set, NULL)), "p0");
    assert_int_equal(hk_policy_limits(hk_policies_get(set, "p99"))->max_attempts, 100);
    hk_policies_free(set);
}

/* ---- loading ---- */

static void test_a_files_policies_are_added_and_its_default_set(void **state)
{
    (void)state;
    struct hk_policies *set = new_set();
    size_t presets = count(set);
    assert_int_equal(
        load(set, "default_policy: b\npolicies: { a: { max_attempts: 2 }, b: {}, cloud-tasks: {} }\n", NULL),
        HK_OK);
    assert_string_equal(reported, "");
    assert_int_equal(count(set), presets + 2);
    assert_string_equal(hk_policy_name(hk_policies_at(set, presets)), "a");
    assert_string_equal(hk_policy_name(hk_policies_at(set, presets + 1)), "b");
    assert_int_equal(hk_policy_limits(hk_policies_get(set, "a"))->max_attempts, 2);
    assert_int_equal(hk_policy_limits(hk_policies_get(set, "cloud-tasks"))->max_attempts, 30); /* replaced */
    assert_string_equal(hk_policy_name(hk_policies_get(set, NULL)), "b");
    hk_policies_free(set);
}

static void test_a_file_without_a_default_leaves_the_sets(void **state)
{
    (void)state;
    struct hk_policies *set = new_set();
    assert_int_equal(add(set, "mine", 3), HK_OK);
    assert_int_equal(add(set, "cloud-tasks", 7), HK_OK);
    assert_int_equal(hk_policies_set_default(set, "mine", NULL), HK_OK);
    assert_int_equal(load(set, "policies: { a: {} }\n", NULL), HK_OK);
    assert_string_equal(hk_policy_name(hk_policies_get(set, NULL)), "mine");
    assert_int_equal(hk_policy_limits(hk_policies_get(set, "cloud-tasks"))->max_attempts, 7);
    assert_int_equal(load(set, "default_policy: a\n", NULL), HK_OK); /* of an earlier file */
    assert_string_equal(hk_policy_name(hk_policies_get(set, NULL)), "a");
    assert_int_equal(
        load(set, "destinations: { d: { http: { url: https://h.example }, policy: mine } }\n", NULL), HK_OK);
    hk_policies_free(set);
}

static void test_a_file_with_an_error_anywhere_adds_nothing(void **state)
{
    (void)state;
    struct hk_policies *set = new_set();
    size_t presets = count(set);
    struct hk_err err = {.code = HK_OK};
    assert_int_equal(add(set, "mine", 3), HK_OK);
    assert_int_equal(load(set,
                          "policies:\n  a: {}\n  mine: {}\ndefault_policy: a\nrelay: { batch: 0 }\n"
                          "destinations: { d: { http: { url: https://h.example }, on_dead: skip } }\n",
                          &err),
                     HK_INVALID);
    assert_string_equal(reported, ":3:3: there is a policy \"mine\" already\n"
                                  ":5:17: \"batch\" must be from 1 to 10000, not \"0\"\n"
                                  ":6:56: warning: \"on_dead\" has no effect without order: key\n");
    assert_int_equal(err.code, HK_INVALID);
    assert_string_equal(err.message + strlen(path), ":3:3: there is a policy \"mine\" already");
    assert_int_equal(count(set), presets + 1);
    assert_string_equal(hk_policy_name(hk_policies_get(set, NULL)), "standard");
    hk_policies_free(set);
}

static void test_the_first_error_is_told_and_not_a_warning_before_it(void **state)
{
    (void)state;
    struct hk_policies *set = new_set();
    struct hk_err err = {.code = HK_OK};
    assert_int_equal(load(set,
                          "destinations: { d: { http: { url: https://h.example }, on_dead: skip } }\n"
                          "default_policy: x\n",
                          &err),
                     HK_INVALID);
    assert_string_equal(err.message + strlen(path), ":2:17: there is no policy \"x\"");
    hk_policies_free(set);
}

static void test_a_missing_file_is_not_found(void **state)
{
    (void)state;
    struct hk_policies *set = new_set();
    struct hk_err err = {.code = HK_OK};
    assert_int_equal(hk_policies_load(set, "no/such/file.yaml", NULL, NULL, &err), HK_NOTFOUND);
    assert_int_equal(err.code, HK_NOTFOUND);
    assert_string_equal(err.message, "no/such/file.yaml: cannot be read: No such file or directory");
    hk_policies_free(set);
}

/* ---- custom ---- */

static bool never_retry(void *instance, uint32_t n, int status, const struct hk_facts *facts,
                        uint64_t *wait_ms)
{
    (void)instance, (void)n, (void)status, (void)facts, (void)wait_ms;
    return false;
}

static const struct hk_policy_ops custom_ops = {.should_retry = never_retry};

static void test_custom_operations_are_found_by_name(void **state)
{
    (void)state;
    static const struct hk_policy_ops empty = {.create = NULL};
    struct hk_policies *set = new_set();
    int here = 0;
    void *arg = NULL;
    assert_int_equal(hk_policies_register(set, "mine", &custom_ops, &here, NULL), HK_OK);
    assert_int_equal(hk_policies_register(set, "mine", &custom_ops, &here, NULL), HK_EXISTS);
    assert_int_equal(hk_policies_register(set, "", &custom_ops, NULL, NULL), HK_INVALID);
    assert_int_equal(hk_policies_register(set, "x", &empty, NULL, NULL), HK_INVALID);
    assert_int_equal(load(set, "policies: { a: { custom: mine }, b: { custom: other } }", NULL), HK_INVALID);
    assert_string_equal(reported, ":1:47: no custom policy is registered as \"other\"\n");
    assert_int_equal(load(set, "policies: { a: { custom: mine } }", NULL), HK_OK);
    assert_ptr_equal(hk_policy_ops(hk_policies_get(set, "a"), &arg), &custom_ops);
    assert_ptr_equal(arg, &here);
    hk_policies_free(set);
}

/* ---- memory ---- */

static void ignore(void *arg, const char *line)
{
    (void)arg, (void)line;
}

static enum hk_code build_and_load(void)
{
    struct hk_policies *set = NULL;
    struct hk_policy *policy = NULL;
    enum hk_code rc = hk_policies_new(&set, NULL);
    if (rc == HK_OK)
        rc = hk_policies_register(set, "mine", &custom_ops, NULL, NULL);
    if (rc == HK_OK)
        rc = hk_policy_new("standard", &policy, NULL);
    if (rc == HK_OK)
        rc = hk_policies_add(set, policy, NULL);
    if (rc == HK_OK)
        rc = hk_policies_load(set, path, ignore, NULL, NULL);
    if (rc == HK_NOMEM && set && hk_policies_get(set, "a")) /* nothing of a file that failed */
        rc = HK_CONFLICT;
    hk_policy_free(policy);
    hk_policies_free(set);
    return rc;
}

static void test_out_of_memory_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    write_file("default_policy: b\npolicies: { a: { custom: mine }, b: {} }\n");
    fail_each_allocation(build_and_load, HK_OK);
    write_file("default_policy: c\npolicies: { a: { custom: mine }, b: {} }\n");
    fail_each_allocation(build_and_load, HK_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_set_holds_the_presets_and_standard_is_the_default),
        cmocka_unit_test(test_a_copy_is_added_once_under_its_name),
        cmocka_unit_test(test_a_preset_may_be_replaced_once_and_keeps_its_place),
        cmocka_unit_test(test_a_policy_that_never_ends_is_not_added),
        cmocka_unit_test(test_the_default_must_exist_and_survives_growth),
        cmocka_unit_test(test_a_files_policies_are_added_and_its_default_set),
        cmocka_unit_test(test_a_file_without_a_default_leaves_the_sets),
        cmocka_unit_test(test_a_file_with_an_error_anywhere_adds_nothing),
        cmocka_unit_test(test_the_first_error_is_told_and_not_a_warning_before_it),
        cmocka_unit_test(test_a_missing_file_is_not_found),
        cmocka_unit_test(test_custom_operations_are_found_by_name),
        cmocka_unit_test(test_out_of_memory_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
