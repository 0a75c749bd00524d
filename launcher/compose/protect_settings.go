package compose

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/base/config"
)

// Named guards what the settings name, and what the variables do that rlp or its
// helper programs obey. The place of each entry says which setting that is.
func (a *Reader) Named(cfg config.Config) ([]caps.Entry, error) {
	var list []caps.Entry
	for _, n := range append(cfg.Paths(), a.namedByVariables(cfg)...) {
		deny, err := a.guard(n.Path, n.Secret)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Key, err)
		}
		for _, e := range deny {
			if e.Grant.Scope == "/" {
				continue // nothing would be left
			}
			e.Pos = caps.Pos{File: NamedBy + n.Key}
			list = append(list, e)
		}
	}
	return list, nil
}

// namedBy begins the place of what is protected because a setting names it.
const NamedBy = "setting "

// namedByVariables are the files that variables of the environment name: whom
// TLS trusts, by what key collectors know rlp, and what the program that is
// asked for secrets is told. Programs that are looked for by name alone are
// found in the folders of PATH.
func (a *Reader) namedByVariables(cfg config.Config) []config.NamedPath {
	var list []config.NamedPath
	user := filepath.Clean(a.getenv("HOME"))
	add := func(variable string, secret bool) {
		for _, path := range filepath.SplitList(a.getenv(variable)) {
			if filepath.IsAbs(path) && user != filepath.Clean(path) {
				list = append(list, config.NamedPath{Key: variable, Path: path, Secret: secret})
			}
		}
	}
	add("SSL_CERT_FILE", false)
	add("SSL_CERT_DIR", false)
	for _, kv := range a.Env {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") {
			switch key := strings.HasSuffix(name, "_CLIENT_KEY"); {
			case key, strings.HasSuffix(name, "_CERTIFICATE"):
				add(name, key)
			}
		}
	}
	if slices.ContainsFunc(cfg.Audit.Publish, func(to string) bool { return strings.HasPrefix(to, "git:") }) {
		add("PATH", false)
	}
	if cfg.Security.SecretsProvider == "exec" {
		for _, name := range cfg.Security.SecretsEnv {
			add(name, false)
		}
	}
	return list
}
