package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"runloop.dev/rlp/internal/engine/guest/hostiletest"
)

// An attack is one launch of an agent that means harm, and the statuses by which
// it may end. A deadline may come first on a busy machine.
type attack struct {
	name string
	args []string
	ends []int
	// programs says that it starts some: a lane ends whatever comes to its process
	// as an orphan, so that there is one run with programs in a process.
	programs bool
}

func (a attack) judge(t *testing.T, status int, text string) {
	t.Helper()
	if !slices.Contains(a.ends, status) && status != 124 {
		t.Errorf("%s: exit status %d, want one of %v: %.2000s", a.name, status, a.ends, text)
	}
}

// mix are attacks on the engine, which are modules, and on everything that a
// guest can call, which are commands of the probe.
func (h *house) mix(t *testing.T) []attack {
	t.Helper()
	var list []attack
	for i, a := range append(hostiletest.Runs(), hostiletest.Claims()...) {
		list = append(list, h.module(i, a))
	}
	if testing.Short() { // the race detector takes long to compile what is large
		return list
	}
	wasm, err := os.ReadFile(buildProbe(t))
	if err != nil {
		t.Fatal(err)
	}
	h.soakBundles(wasm)
	forever := forever()
	cage := filepath.Join(h.out, "cage")
	bound := []string{
		"--limit", "wall_time_ms=400", "--limit", "memory_bytes=67108864", "--limit",
		"kb_write_bytes=300000", "--limit", "hostcalls_max=5000",
	}
	for i, c := range []struct {
		ends []int
		do   []string
	}{
		{[]int{0}, []string{"args"}},
		{nil, []string{"sleep", "1h"}},
		{nil, []string{"spin"}},
		{[]int{137}, []string{"--fuel", "spin"}},
		{[]int{138, 1}, []string{"grow", "500"}},
		{[]int{0}, []string{"flood", "3000"}},
		{[]int{0}, []string{"errtext", "RLP_WASM_ERROR code=WASM_TIMEOUT exit_code=124 message=x\n"}},
		{[]int{1}, []string{"exit", "124"}},
		{[]int{1}, []string{"exit", "137"}},
		{[]int{1}, []string{"exit", "138"}},
		{[]int{1}, []string{"exit", "78"}},
		{[]int{7}, []string{"exit", "7"}},
		{[]int{1}, []string{"panic"}},
		{[]int{0}, []string{"paths", cage}},
		{[]int{0}, []string{"files", filepath.Join(cage, "f")}},
		{[]int{0}, []string{"repeat", "/etc/passwd", "2000"}},
		{[]int{0}, []string{"chatter", "300"}},
		{[]int{0}, []string{"hoard", "drafts", "20"}},
		{[]int{0}, []string{"put", "notes", "healthy", "spoilt"}},
		{[]int{0}, []string{"secret", theSecret, "http", "https://localhost:1/", "ask", "-", "hello"}},
		{[]int{0, 78}, []string{"script", "sleep " + forever + " & setsid sleep " + forever + " & echo begun"}},
		{[]int{0, 78}, []string{"script", "mkfifo pipe; (cat pipe &) ; rm pipe; kill -9 $$"}},
		{[]int{0, 78}, []string{"script", "while :; do (sleep " + forever + " &) ; done"}},
		{[]int{0}, []string{
			"read", h.dir + "/config.toml", "write", h.dir + "/caps/overrides/healthy.toml", "x", "ls",
			h.dir,
		}},
	} {
		agent := "hostile"
		if c.do[0] == "script" {
			agent = "runner"
		}
		args := append([]string{"launch", filepath.Join(h.out, agent)}, bound...)
		if c.do[0] == "--fuel" {
			c.do = c.do[1:]
			args = append(args, "--limit", "cpu_fuel=2000000")
		}
		list = append(list, attack{
			fmt.Sprint(i, " ", c.do[0]), append(append(args, "--"), c.do...), c.ends,
			c.do[0] == "script",
		})
	}
	return list
}

// forever is a time that no other program sleeps for: who sleeps for it is a
// program of this mix that was left over.
func forever() string { return fmt.Sprint(3_000_000_000 + os.Getpid()) }

// leftovers counts the programs of the mix that are left, and the processes that
// rlp started for this home: the compiler, and rlp itself.
func (h *house) leftovers() int {
	t := h.t
	t.Helper()
	lists, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range lists {
		data, err := os.ReadFile(path)
		if err != nil { // it is gone
			continue
		}
		if bytes.Equal(data, []byte("sleep\x00"+forever()+"\x00")) || bytes.Contains(data, []byte(h.dir)) {
			n++
		}
	}
	return n
}

// module makes a bundle of an attack on the engine.
func (h *house) module(i int, a hostiletest.Attack) attack {
	dir := filepath.Join(h.out, "attacks", fmt.Sprint(i))
	h.write(filepath.Join(dir, "manifest.toml"),
		"[agent]\nname = \"attack\"\nkind = \"wasm32-wasip1\"\nentry_wasm = { path = \"a.wasm\" }\n")
	h.write(filepath.Join(dir, "policy.caps"), "[capabilities]\nkb_read = [\"notes\"]\n")
	h.write(filepath.Join(dir, "a.wasm"), string(a.Bytes()))
	all := attack{name: a.Name, args: []string{
		"launch", dir, "--limit", "wall_time_ms=200", "--limit", "memory_bytes=67108864", "--limit", "cpu_fuel=500000",
	}}
	for bit, status := range map[int]int{
		hostiletest.Refused: 65, hostiletest.Timeout: 124, hostiletest.Fuel: 137, hostiletest.Memory: 138,
		hostiletest.Trap: 1, hostiletest.OK: 0,
	} {
		if a.Ends&bit != 0 {
			all.ends = append(all.ends, status)
		}
	}
	return all
}

// soakBundles makes the agents of the soak, and what they are granted.
func (h *house) soakBundles(wasm []byte) {
	h.write(filepath.Join(h.out, "healthy-note"), "a note\n")
	h.write(filepath.Join(h.out, "healthy-out", "keep"), "")
	h.write(filepath.Join(h.out, "cage", "f"), "in the cage\n")
	for name, policy := range map[string]string{
		"healthy": fmt.Sprintf("fs = [%q]\nfs_rw = [%q]\nkb_read = [\"notes\", \"notes_raw\"]\nkb_write = [\"notes\"]\n",
			filepath.Join(h.out, "healthy-note"), filepath.Join(h.out, "healthy-out")),
		"runner": "exec = true\n",
		"hostile": fmt.Sprintf("fs_rw = [%q]\nkb_read = [\"contacts\"]\nkb_write = [\"drafts\"]\nmodel = true\ntime = true\n",
			filepath.Join(h.out, "cage")),
	} {
		dir := filepath.Join(h.out, name)
		h.write(filepath.Join(dir, "manifest.toml"),
			fmt.Sprintf("[agent]\nname = %q\nkind = \"wasm32-wasip1\"\nentry_wasm = { path = \"a.wasm\" }\n", name))
		h.write(filepath.Join(dir, "policy.caps"), "[capabilities]\n"+policy)
		h.write(filepath.Join(dir, "a.wasm"), string(wasm))
	}
}
