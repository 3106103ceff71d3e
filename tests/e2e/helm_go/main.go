// SPDX-License-Identifier: Apache-2.0

// Renders a Helm chart with Helm's own engine, as `helm template` does: helm CHART [VALUES.yaml]...
// Helm's command line would do it, too, but takes many times as long to build.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func render(path string, files []string) (map[string]string, error) {
	chart, err := loader.Load(path)
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	for _, file := range files {
		more, err := chartutil.ReadValuesFile(file)
		if err != nil {
			return nil, err
		}
		values = chartutil.CoalesceTables(more.AsMap(), values)
	}
	options := chartutil.ReleaseOptions{Name: "hikyaku", Namespace: "default", Revision: 1, IsInstall: true}
	capabilities := *chartutil.DefaultCapabilities
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.31.0", Major: "1", Minor: "31"}
	all, err := chartutil.ToRenderValues(chart, values, options, &capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(chart, all)
}

func main() {
	rendered, err := render(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	names := []string{}
	for name, text := range rendered {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(text) != "" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf("---\n%s\n", strings.TrimSpace(rendered[name]))
	}
}
