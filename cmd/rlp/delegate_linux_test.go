package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// launcherModule is a module that asks n times for a run of the agent, and does
// not look at what comes of it.
func launcherModule(agent string, n int) string {
	request := `{"agent":"` + agent + `"}`
	str := func(s string) string { return string(binary.AppendUvarint(nil, uint64(len(s)))) + s }
	section := func(id byte, body string) string { return string(id) + str(body) }
	i32 := func(v int) string { // signed
		out := "\x41"
		for ; v >= 64; v >>= 7 {
			out += string([]byte{byte(v)&0x7f | 0x80})
		}
		return out + string([]byte{byte(v)})
	}
	code := "\x01\x01\x7f\x03\x40" + i32(8) + i32(len(request)) + i32(1024) + i32(0) + "\x10\x00\x1a" +
		"\x20\x00" + i32(1) + "\x6a\x22\x00" + i32(n) + "\x48\x0d\x00\x0b\x0b"
	return "\x00asm\x01\x00\x00\x00" +
		section(1, "\x02\x60\x04\x7f\x7f\x7f\x7f\x01\x7e\x60\x00\x00") +
		section(2, "\x01"+str("runloop_v1")+str("agent_launch")+"\x00\x00") +
		section(3, "\x01\x01") + section(5, "\x01\x00\x01") + section(7, "\x01"+str("_start")+"\x00\x01") +
		section(10, "\x01"+str(code)) + section(11, "\x01\x00"+i32(8)+"\x0b"+str(request))
}

// agentOf writes a bundle of module under policy.
func (h *house) agentOf(name, module, policy string) string {
	dir := filepath.Join(h.out, name)
	h.write(filepath.Join(dir, "manifest.toml"), "[agent]\nname = \""+name+
		"\"\nversion = \"1.0.0\"\nkind = \"wasm32-wasip1\"\nentry_wasm = { path = \"a.wasm\" }\n")
	h.write(filepath.Join(dir, "a.wasm"), module)
	h.write(filepath.Join(dir, "policy.caps"), "[capabilities]\n"+policy)
	return dir
}

// delegators is a house with an agent that launches another one n times, whose
// answers do not keep it from the next.
func delegators(t testing.TB, n int) (h *house, boss string) {
	h = &house{t: t.(*testing.T), dir: filepath.Join(t.TempDir(), "home"), out: t.TempDir()}
	h.write(filepath.Join(h.dir, "caps", "profiles", "_untrusted.toml"),
		"schema_version = \"1.0\"\nname = \"_untrusted\"\n[deny]\ncapabilities = []\n")
	h.mustAs("agent", "install", h.agentOf("child", emptyModule,
		"kb_read = [\"notes\"]\nmodel = true\nsecrets = [\"runloop/a/b\"]\n"))
	return h, h.agentOf("boss", launcherModule("child", n), "agents = [\"child\"]\nkb_read = [\"notes\"]\nmodel = true\n")
}

func (h *house) mustAs(args ...string) string {
	h.t.Helper()
	status, text := h.in("default", "", args...)
	if status != 0 {
		h.t.Fatalf("%v: %d %s", args, status, text)
	}
	return text
}

// held counts what a process can forget to give back. What was given back may
// take a moment to be gone: no more than so many goroutines are waited for.
func held(t *testing.T, most int) (fds, goroutines, children int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(time.Minute); runtime.NumGoroutine() > most && time.Now().Before(until); {
		<-tick.C
	}
	links, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		children += len(strings.Fields(string(text)))
	}
	return len(links), runtime.NumGoroutine(), children
}

// A run that is over has given everything back, however many a run launches.
func TestDelegationsLeaveNothingBehind(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 10
	}
	h, boss := delegators(t, n)
	h.mustAs("launch", h.agentOf("warm", launcherModule("child", 1), "agents = [\"child\"]\n")) // what is made once
	fds, goroutines, children := held(t, runtime.NumGoroutine())
	text := h.mustAs("launch", boss, "--json")
	if got := strings.Count(text, `"agent": "child"`); got != n {
		t.Fatalf("%d of %d agents were launched: %s", got, n, text)
	}
	fds2, goroutines2, children2 := held(t, goroutines+2)
	if fds2 > fds+2 || goroutines2 > goroutines+2 || children2 > children {
		t.Errorf("before: %d descriptors, %d goroutines, %d processes; after %d delegations: %d, %d, %d", fds, goroutines,
			children, n, fds2, goroutines2, children2)
	}
	if journals, _ := os.ReadDir(filepath.Join(h.dir, "journal")); len(journals) < n {
		t.Errorf("control: %d journals of %d runs", len(journals), n)
	}
	if left, _ := filepath.Glob(filepath.Join(h.dir, "agents", ".*")); len(left) > 0 {
		t.Errorf("left behind by installing: %v", left)
	}
}

// The installed agent is one whole bundle at every moment, for its owner alone,
// and what goes wrong leaves the old one.
func TestInstallIsOneStep(t *testing.T) {
	h, _ := delegators(t, 1)
	at := filepath.Join(h.dir, "agents", "child")
	info, err := os.Stat(at)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("%v %v", info, err)
	}
	before, err := os.ReadFile(filepath.Join(at, "policy.caps"))
	if err != nil {
		t.Fatal(err)
	}
	bad := h.agentOf("bad", emptyModule, "fs = [\"relative\"]\n")
	h.write(filepath.Join(bad, "manifest.toml"), strings.Replace(mustRead(t, filepath.Join(bad, "manifest.toml")), `"bad"`,
		`"child"`, 1))
	for name, module := range map[string]string{
		"a policy that is wrong": emptyModule,
		"a module that is none":  "nothing",
	} {
		h.write(filepath.Join(bad, "a.wasm"), module)
		if status, text := h.in("default", "", "agent", "install", bad); status != 65 {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if after := mustRead(t, filepath.Join(at, "policy.caps")); after != string(before) {
		t.Errorf("the installed agent is another now: %s", after)
	}
	h.agentOf("child", emptyModule, "kb_read = [\"events\"]\n")
	if text := h.mustAs("agent", "install", filepath.Join(h.out, "child")); !strings.Contains(text,
		"takes the place of child 1.0.0") {
		t.Errorf("%s", text)
	}
	if after := mustRead(t, filepath.Join(at, "policy.caps")); !strings.Contains(after, "events") {
		t.Errorf("control: %s", after)
	}
	link := filepath.Join(h.dir, "agents", "other")
	if err := os.Symlink(h.out, link); err != nil {
		t.Fatal(err)
	}
	if status, text := h.in("default", "", "agent", "install", h.agentOf("other", emptyModule,
		"time = true\n")); status != 65 || !strings.Contains(text, "in the way") {
		t.Errorf("through a link: %d %s", status, text)
	}
	if entries, err := os.ReadDir(filepath.Join(h.dir, "agents")); err != nil || len(entries) != 2 {
		t.Errorf("%v %v", entries, err)
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// An installed agent whose files are not those of a bundle of its name is
// refused, and the one that asks is told so.
func TestAnAgentIsWhatItIsInstalledAs(t *testing.T) {
	h, boss := delegators(t, 1)
	outcome := func() string {
		t.Helper()
		text := h.mustAs("launch", boss, "--json")
		i := strings.Index(text, `"children"`)
		if i < 0 {
			return "not launched"
		}
		_, rest, _ := strings.Cut(text[i:], `"outcome": "`)
		word, _, _ := strings.Cut(rest, `"`)
		return word
	}
	if got := outcome(); got != "ok" {
		t.Fatalf("control: %s", got)
	}
	at, elsewhere := filepath.Join(h.dir, "agents", "child"), filepath.Join(h.dir, "elsewhere")
	manifest := mustRead(t, filepath.Join(at, "manifest.toml"))
	h.write(filepath.Join(at, "manifest.toml"), strings.Replace(manifest, `"child"`, `"trusted"`, 1))
	if got := outcome(); got != "refused" {
		t.Errorf("another's name: %s", got)
	}
	h.write(filepath.Join(at, "manifest.toml"), manifest)
	if err := os.Rename(at, elsewhere); err != nil {
		t.Fatal(err)
	}
	if got := outcome(); got != "not launched" {
		t.Errorf("not installed: %s", got)
	}
	if err := os.Symlink(elsewhere, at); err != nil {
		t.Fatal(err)
	}
	if got := outcome(); got != "refused" {
		t.Errorf("a link: %s", got)
	}
}

// What a delegation costs beside a launch: run with -bench Delegat.
func BenchmarkDelegation(b *testing.B) {
	h := &house{t: &testing.T{}, dir: filepath.Join(b.TempDir(), "home"), out: b.TempDir()}
	h.write(filepath.Join(h.dir, "caps", "profiles", "_untrusted.toml"),
		"schema_version = \"1.0\"\nname = \"_untrusted\"\n[deny]\ncapabilities = []\n")
	if status, text := h.bench(b, "agent", "install", h.agentOf("child", emptyModule,
		"kb_read = [\"notes\"]\n")); status != 0 {
		b.Fatal(text)
	}
	for _, n := range []int{1, 101} {
		boss := h.agentOf(fmt.Sprintf("boss%d", n), launcherModule("child", n), "agents = [\"child\"]\n")
		h.bench(b, "launch", boss)
		b.Run(fmt.Sprintf("launches=%d", n), func(b *testing.B) {
			for b.Loop() {
				if status, text := h.bench(b, "launch", boss); status != 0 {
					b.Fatal(text)
				}
				b.StopTimer() // or the next launch takes hundreds of journals in
				if err := os.RemoveAll(filepath.Join(h.dir, "journal")); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

func (h *house) bench(b *testing.B, args ...string) (int, string) {
	var out bytes.Buffer
	status := invoke(b.Context(), environment{
		args: append([]string{"--home", h.dir}, args...), env: []string{"HOME=" + h.out}, stdin: strings.NewReader(""),
		stdout: &out, stderr: &out,
	})
	return status, out.String()
}
