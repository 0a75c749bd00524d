package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"runloop.dev/rlp/internal/dev/tools/bench/wasm"
)

// A guest is one program in the forms that the contenders want it in.
type guest struct {
	name   string
	module string // the file
	agent  string // the bundle's folder
	native string // the same as a program of this machine
	script string // the same in JavaScript
	policy string // its policy.caps; "": it asks for nothing
}

// contenders prepares everything that is started; noDaemon is why rlp daemon is
// not.
func (b *bench) contenders(noDaemon error) (all []contender, err error) {
	bare, extism, empty, err := b.programs()
	if err != nil {
		return nil, err
	}
	tiny, large, err := b.guests()
	if err != nil {
		return nil, err
	}
	plain := b.env("")
	all = append(all,
		contender{key: "true", command: command{args: []string{truePath()}, env: plain}},
		contender{key: "go-true", command: command{args: []string{empty}, env: plain}},
	)
	log := filepath.Join(b.tmp, "log")
	for _, g := range []guest{tiny, large} {
		cache := filepath.Join(b.tmp, "bare-cache")
		add := func(what string, env []string, args ...string) {
			all = append(all, contender{key: g.name + "/" + what, command: command{args: args, env: env, says: "ok"}})
		}
		ours := func(what, missing string, env []string, args ...string) {
			add(what, env, args...)
			all[len(all)-1].ours, all[len(all)-1].missing = true, missing
		}
		add("bare", plain, bare, "-cache", cache, g.module)
		add("bare+sync", plain, bare, "-cache", cache, "-log", log, g.module)
		ours("rlp", "", append(b.env("home"), "RUNLOOP_DAEMON=off"), b.rlp, "launch", g.agent)
		missing := ""
		if noDaemon != nil {
			missing = noDaemon.Error()
		}
		ours("daemon", missing, b.env("home-daemon"), b.rlp, "launch", g.agent)
		add("extism", plain, extism, "-cache", filepath.Join(b.tmp, "extism-cache"), g.module)
		all = append(all, b.outside(g)...)
	}
	return all, nil
}

// outside are the peers that are no WASM at all.
func (b *bench) outside(g guest) []contender {
	deno, node, bwrap := b.deno(), b.node(), b.bwrap()
	plain := b.env("")
	confined := []string{
		bwrap.path, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev",
		"--proc", "/proc", g.native,
	}
	return []contender{
		{key: g.name + "/deno", missing: deno.missing, command: command{args: []string{
			deno.path, "run", "--no-prompt",
			g.script,
		}, env: plain, says: "ok"}},
		{key: g.name + "/deno-audit", missing: deno.missing, command: command{
			args: []string{deno.path, "run", "--no-prompt", g.script}, says: "ok",
			env: append(plain, "DENO_AUDIT_PERMISSIONS="+filepath.Join(b.tmp, "deno-audit")),
		}},
		{key: g.name + "/node", missing: node.missing, command: command{args: []string{
			node.path, "--permission",
			"--allow-fs-read=" + g.script, g.script,
		}, env: plain, says: "ok"}},
		{key: g.name + "/bwrap", missing: bwrap.missing, command: command{args: confined, env: plain, says: g.nativeSays()}},
	}
}

// nativeSays is what the native form prints: of the tiny one it is true(1).
func (g guest) nativeSays() string {
	if g.native == truePath() {
		return ""
	}
	return "ok"
}

func truePath() string {
	path, err := exec.LookPath("true")
	if err != nil {
		return "/bin/true"
	}
	return path
}

// programs builds the engine alone, Extism's runner, and a Go program that does nothing.
func (b *bench) programs() (bare, extism, empty string, err error) {
	build := func(name string) string {
		out := filepath.Join(b.work, name)
		if err == nil {
			err = b.program(out, "./bench/"+name)
		}
		return out
	}
	bare, extism, empty = build("bare"), build("extism"), build("nothing")
	return bare, extism, empty, err
}

// guests makes the tiny agent and the Go agent.
func (b *bench) guests() (tiny, large guest, err error) {
	script := filepath.Join(b.root, "internal", "dev", "tools", "bench", "js", "hello.js")
	tiny = guest{name: "tiny", native: truePath(), script: script}
	large = guest{name: "go", native: filepath.Join(b.work, "hello"), script: script}
	file := filepath.Join(b.work, "hello.wasm")
	if err := b.program(large.native, "./bench/hello"); err != nil {
		return tiny, large, err
	}
	if err := b.program(file, "./bench/hello", "GOOS=wasip1", "GOARCH=wasm"); err != nil {
		return tiny, large, err
	}
	module, err := os.ReadFile(file)
	if err != nil {
		return tiny, large, err
	}
	if err := b.bundle(&tiny, wasm.Says("ok\n")); err != nil {
		return tiny, large, err
	}
	return tiny, large, b.bundle(&large, module)
}

// bundle writes an agent.
func (b *bench) bundle(g *guest, module []byte) error {
	g.agent = filepath.Join(b.tmp, "agents", g.name+".bundle")
	g.module = filepath.Join(g.agent, "a.wasm")
	if err := os.MkdirAll(g.agent, 0o755); err != nil {
		return err
	}
	policy := []byte(cmp.Or(g.policy, "# It prints a word, which is no capability.\n[capabilities]\n"))
	manifest := fmt.Sprintf("[agent]\nname = %q\nversion = \"1.0.0\"\nkind = \"wasm32-wasip1\"\n"+
		"entry_wasm = { path = \"a.wasm\", sha256 = \"%x\" }\n\n[caps]\nfile = \"policy.caps\"\nsha256 = \"%x\"\n",
		g.name, sha256.Sum256(module), sha256.Sum256(policy))
	for name, data := range map[string][]byte{"a.wasm": module, "policy.caps": policy, "manifest.toml": []byte(manifest)} {
		if err := os.WriteFile(filepath.Join(g.agent, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
