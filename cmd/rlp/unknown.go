//go:build !slim

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nearWords has c, and every command below it, answer an argument that is none
// with the command that was nearly written, and with the help that has them all.
func nearWords(c *cobra.Command) {
	if rule := c.Args; rule != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			err := rule(c, args)
			if err == nil || !strings.HasPrefix(err.Error(), "unknown command") {
				return err
			}
			return unknownArgument(c, args[0])
		}
	}
	for _, sub := range c.Commands() {
		nearWords(sub)
	}
}

func unknownArgument(c *cobra.Command, arg string) error {
	if !c.HasAvailableSubCommands() {
		return usagef("%s takes no argument %q; see %s --help", c.CommandPath(), arg, c.CommandPath())
	}
	c.SuggestionsMinimumDistance = 2
	mean := ""
	if near := c.SuggestionsFor(arg); len(near) > 0 {
		mean = fmt.Sprintf("; did you mean %s %s?", c.CommandPath(), strings.Join(near, ", or "))
	}
	return usagef("%s has no command %q%s; see %s --help", c.CommandPath(), arg, mean, c.CommandPath())
}

// foreignFlag is what to write instead of a flag of another system, by whose
// error; "" for what is none. There a flag says how a sandbox is made; here that
// is the operator's, in config.toml, and what an agent may touch its policy's.
func foreignFlag(err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	const exec = "in [exec] of config.toml: "
	return map[string]string{
		"sandbox":                          exec + `write lane = "container" for what is called strong there, lane = "native" for dev, or lane = "auto" for the strongest lane that this machine has`,
		"strong-lane-preference":           exec + `lane = "container" for docker, "auto" for the strongest that there is; every agent is WebAssembly`,
		"sandbox-memory-mb":                exec + "memory_bytes, in bytes; memory_bytes under [limits] bounds the agent itself",
		"sandbox-stdout-max-kb":            exec + "stdout_max_bytes, in bytes",
		"sandbox-stderr-max-kb":            exec + "stderr_max_bytes, in bytes",
		"sandbox-allow-network":            "nowhere for programs, which have no network in any lane; the agent's own is net in policy.caps",
		"rust-allow-network":               "nowhere for programs, which have no network in any lane; the agent's own is net in policy.caps",
		"docker-pids-limit":                exec + "pids",
		"docker-user":                      exec + "user",
		"docker-tmpfs":                     exec + "tmpfs, a list",
		"docker-seccomp-profile":           exec + "seccomp",
		"docker-apparmor-profile":          exec + "apparmor",
		"docker-ulimit-nofile":             exec + "ulimit_nofile",
		"docker-ulimit-nproc":              exec + "ulimit_nproc",
		"docker-cpus":                      exec + "cpus",
		"wasm-preopen-dir":                 `in policy.caps: fs = ["DIR"]; to leave an agent less, --allow fs:read:DIR`,
		"wasm-allow-write-dir":             `in policy.caps: fs_rw = ["DIR"]; to take writing away, --deny fs:write:DIR`,
		"wasm-fs-normalize-existing-paths": "nowhere: every path is made canonical at launch",
		"wasm-fs-normalization-profile":    `in [security] of config.toml: path_profile = "strict" or "relaxed"`,
		"use-rust-exec":                    exec + "lane",
		"rust-exec-lane":                   exec + "lane; every agent is WebAssembly, and programs that it starts run in the lane",
		"rust-exec-mode":                   "nowhere: there is one way to start programs",
	}[unknown.GetSpecifiedName()]
}
