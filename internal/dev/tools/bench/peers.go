package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A peer is a program of others that is compared with, where it is there.
type peer struct {
	name, path, missing string
}

// fetch gets the peers that are asked for and come from the npm registry.
// asked is "" for none, "1" for all, or names with commas between.
func (b *bench) fetch(asked string) error {
	var packages []string
	for _, name := range []string{"deno", "node"} {
		if asked == "1" || slices.Contains(strings.Split(asked, ","), name) {
			packages = append(packages, name)
		}
	}
	if len(packages) == 0 {
		return nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		b.say("npm is not there, so %s cannot be fetched", strings.Join(packages, " and "))
		return nil
	}
	args := append([]string{"install", "--prefix", b.fetched(), "--no-audit", "--no-fund", "--no-save"}, packages...)
	b.say("npm install %s", strings.Join(packages, " "))
	if err := os.MkdirAll(b.fetched(), 0o755); err != nil {
		return err
	}
	if out, err := exec.Command(npm, args...).CombinedOutput(); err != nil {
		b.say("npm could not fetch %s: %v\n%s", strings.Join(packages, " and "), err, tail(out))
	}
	return nil
}

// fetched is where npm puts what it fetches.
func (b *bench) fetched() string { return filepath.Join(b.work, "npm") }

// deno is the one that was fetched, or the one that is installed.
func (b *bench) deno() peer {
	return b.look("deno", []string{"node_modules/@deno/*/deno"}, "make bench PEERS=deno fetches it (npm)", "eval", "0")
}

// node must know --permission.
func (b *bench) node() peer {
	return b.look("node", []string{"node_modules/node/bin/node", "node_modules/node-*/bin/node"},
		"make bench PEERS=node fetches it (npm)", "--permission", "--version")
}

// bwrap is bubblewrap, if it can do anything here.
func (b *bench) bwrap() peer {
	return b.look("bwrap", nil, "apt-get install bubblewrap", "--unshare-all", "--ro-bind", "/", "/", "true")
}

// look returns the first program of that name that can be run with args.
func (b *bench) look(name string, patterns []string, how string, args ...string) peer {
	var paths []string
	for _, p := range patterns {
		found, _ := filepath.Glob(filepath.Join(b.fetched(), p)) // the pattern is a constant
		paths = append(paths, found...)
	}
	if installed, err := exec.LookPath(name); err == nil {
		paths = append(paths, installed)
	}
	why := "not there"
	for _, path := range paths {
		cmd := exec.Command(path, args...)
		cmd.Env = b.env("")
		out, err := cmd.CombinedOutput()
		if err == nil {
			return peer{name: name, path: path}
		}
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		why = fmt.Sprintf("%s %s: %s", path, strings.Join(args, " "), line)
	}
	return peer{name: name, missing: why + "; " + how}
}
