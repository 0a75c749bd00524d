package config

// ForeignFlag is what to write instead of a flag of another system; "" for what is
// none. There a flag says how a sandbox is made; here that is the operator's, in
// config.toml, and what an agent may touch its policy's.
func ForeignFlag(name string) string {
	const exec = "in [exec] of config.toml: "
	return map[string]string{
		"sandbox": exec +
			`write lane = "container" for what is called strong there, lane = "native" for dev, or lane = "auto" for the strongest lane that this machine has`,
		"strong-lane-preference": exec +
			`lane = "container" for docker, "auto" for the strongest that there is; every agent is WebAssembly`,
		"sandbox-memory-mb": exec +
			"memory_bytes, in bytes; memory_bytes under [limits] bounds the agent itself",
		"sandbox-stdout-max-kb": exec + "stdout_max_bytes, in bytes",
		"sandbox-stderr-max-kb": exec + "stderr_max_bytes, in bytes",
		"sandbox-allow-network": "nowhere for programs, which have no network in any lane; the agent's own is " +
			"net in policy.caps",
		"rust-allow-network": "nowhere for programs, which have no network in any lane; the agent's own is " +
			"net in policy.caps",
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
		"rust-exec-lane": exec +
			"lane; every agent is WebAssembly, and programs that it starts run in the lane",
		"rust-exec-mode": "nowhere: there is one way to start programs",
	}[name]
}
