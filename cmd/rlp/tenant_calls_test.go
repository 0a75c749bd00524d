package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/internal/effect/wasi"
)

// A reach is what an agent tries on what is another tenant's, as commands of the
// probe, and what each is answered. One that has none says why.
type reach struct {
	do   []string // a command and its arguments, and what its answer is like at the end
	more [][]string
	none string
}

func tries(answer string, command ...string) reach { return reach{do: append(command, answer)} }

func (r reach) and(answer string, command ...string) reach {
	r.more = append(slices.Clone(r.more), append(command, answer))
	return r
}

func harmlessCall(why string) reach { return reach{none: why} }

const refusedPath = `error: .*([Pp]ermission denied|denied)`

// reaches are those of every function that a guest can import. handle is one of
// the owner's run.
func (h *house) reaches(handle string) map[string]reach {
	art, mine := h.owner.Artifacts(), h.out
	file, run := filepath.Join(art, "f.md"), h.owner.Work(victimAgent, "run")
	theirs, opened := `error: .*(does not exist|not there|noent|unknown)`, "acts on a descriptor that path_open gave"
	noID, answered := "takes no name of anything", "^ok$|revision|^$|^0 "
	return map[string]reach{
		"net_http": tries(`error: .*(secret_unknown|denied)`, "request", "GET", "https://localhost:1/", "Authorization: "+
			handle, "").
			and(`error: .*(secret_unknown|denied|not there)`, "sendkey", theSecret, "https://localhost:1/"),
		"kb_get":         tries(theirs, "get", "notes", theKey),
		"kb_put":         tries(`revision 1$`, "put", "notes", "other", "text"),
		"kb_cas":         tries(`error: .*again|error: .*lost|error: .*revision`, "cas", "notes", theKey, "text", "1"),
		"kb_delete":      tries(theirs+"|ok", "del", "notes", theKey),
		"kb_list":        tries(answered, "list", "contacts", ""),
		"kb_search":      tries(answered, "search", "notes", canary, "9"),
		"secret_handle":  tries(theirs, "secret", theSecret).and(`error`, "secret", handle),
		"model_complete": tries(`by local:echo`, "ask", "-", "hello"),
		"model_embed":    tries(`numbers`, "embed", "-", "hello"),
		"exec_run": tries(`error: .*cwd`, "execin", run, "/bin/true").and(`error: .*cwd`, "execin", "../../../../acme/work",
			"/bin/true").
			and(`error`, "exec", filepath.Join(art, "program")),
		"mcp_call":      tries(`error`, "mcp", "github", "call"),
		"agent_launch":  tries(`error`, "agent", victimAgent),
		"time_now":      harmlessCall(noID),
		"log":           harmlessCall("writes into the log of the run's own tenant"),
		"result":        harmlessCall("goes into the report of the run"),
		"turn_next":     harmlessCall(noID),
		"response_read": harmlessCall("reads what the call before it was answered"),

		"path_open": tries(refusedPath, "read", file).and(refusedPath, "write", file, "x").and(refusedPath,
			"ls", art).and(refusedPath, "ls", filepath.Join(h.dir, "tenants")),
		"path_create_directory": tries(refusedPath, "mkdir", filepath.Join(art, "new")),
		"path_filestat_get": tries(refusedPath, "stat", file).and(refusedPath, "stat", filepath.Join(h.owner.Journal(),
			h.run)),
		"path_filestat_set_times": tries(refusedPath, "touch", file),
		"path_link":               tries(refusedPath, "link", file, filepath.Join(mine, "stolen")),
		"path_readlink":           tries(refusedPath, "readlink", file),
		"path_remove_directory":   tries(refusedPath, "rmdir", art),
		"path_rename": tries(refusedPath, "rename", file, filepath.Join(mine, "stolen")).and(refusedPath,
			"rename", filepath.Join(mine, "backup"), filepath.Join(art, "x")),
		"path_symlink": tries(`ok|error`, "symlink", art, filepath.Join(mine, "way")).and(`error`, "read",
			filepath.Join(mine, "way", "f.md")).and(refusedPath, "read", filepath.Join(mine, "planted", "f.md")),
		"path_unlink_file":  tries(refusedPath, "remove", file),
		"environ_get":       tries(`HOME=`, "environ"),
		"environ_sizes_get": harmlessCall("environ_get"), "args_get": harmlessCall("its own arguments"),
		"args_sizes_get": harmlessCall("its own arguments"),
		"fd_prestat_get": harmlessCall("the one preopen, /"), "fd_prestat_dir_name": harmlessCall("the one preopen, /"),
		"clock_res_get": harmlessCall(noID), "clock_time_get": harmlessCall(noID), "poll_oneoff": harmlessCall(noID),
		"proc_exit":  harmlessCall(noID),
		"proc_raise": harmlessCall(noID), "sched_yield": harmlessCall(noID), "random_get": harmlessCall(noID),
		"sock_accept": harmlessCall("there are no sockets"), "sock_recv": harmlessCall("there are no sockets"),
		"sock_send": harmlessCall("there are no sockets"), "sock_shutdown": harmlessCall("there are no sockets"),
		"fd_advise": harmlessCall(opened), "fd_allocate": harmlessCall(opened), "fd_close": harmlessCall(opened),
		"fd_datasync":   harmlessCall(opened),
		"fd_fdstat_get": harmlessCall(opened), "fd_fdstat_set_flags": harmlessCall(opened),
		"fd_fdstat_set_rights": harmlessCall(opened),
		"fd_filestat_get":      harmlessCall(opened), "fd_filestat_set_size": harmlessCall(opened),
		"fd_filestat_set_times": harmlessCall(opened),
		"fd_pread":              harmlessCall(opened), "fd_pwrite": harmlessCall(opened), "fd_read": harmlessCall(opened),
		"fd_readdir":  harmlessCall(opened),
		"fd_renumber": harmlessCall(opened), "fd_seek": harmlessCall(opened), "fd_sync": harmlessCall(opened),
		"fd_tell": harmlessCall(opened), "fd_write": harmlessCall(opened),
	}
}

// imports are the names of all that a guest can import.
func imports(t *testing.T) []string {
	t.Helper()
	sys, err := wasi.New(wasi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	var names []string
	for _, f := range sys.Funcs() {
		names = append(names, f.Name)
	}
	for _, im := range hostcalls.Imports() {
		names = append(names, im.Name)
	}
	slices.Sort(names)
	return names
}

// probe makes a bundle of the probe under the widest policy that there is.
func (h *house) probe(wasm []byte) string {
	dir := filepath.Join(h.out, "probe")
	h.write(filepath.Join(dir, "manifest.toml"),
		"[agent]\nname = \"probe\"\nkind = \"wasm32-wasip1\"\nentry_wasm = { path = \"a.wasm\" }\n")
	h.write(filepath.Join(dir, "a.wasm"), string(wasm))
	h.write(filepath.Join(dir, "policy.caps"), `[capabilities]
fs = ["/"]
fs_rw = ["`+filepath.Dir(h.dir)+`", "`+h.out+`"]
time = true
kb_read = ["notes", "notes_raw", "contacts"]
kb_write = true
secrets = ["`+theSecret+`"]
net = ["localhost:1"]
model = true
exec = true
env = ["PATH", "HOME", "RLP_SECRET_acme_0canary_0key"]
mcp = ["github"]
agents = ["`+victimAgent+`"]
`)
	h.write(filepath.Join(h.dir, "config.toml"), "[exec]\nlane = \"native\"\n")
	return dir
}

// An agent of one tenant, under the widest policy, tries every function on what
// is another's, by its names, paths and handles. None gives it anything, and the
// other finds everything as it was.
//
//rlp:holds K4 K57 K73
func TestNoImportCrossesTenants(t *testing.T) {
	h := newHouse(t, "acme")
	h.known(t, h.reaches(""))
	if testing.Short() { // the race detector takes long to compile what is large
		return
	}
	wasm, err := os.ReadFile(buildProbe(t))
	if err != nil {
		t.Fatal(err)
	}
	bundle := h.probe(wasm)
	if err := os.Symlink(h.owner.Artifacts(), filepath.Join(h.out, "planted")); err != nil {
		t.Fatal(err)
	}
	control := h.must("", "launch", bundle, "--", "secret", theSecret, "get", "notes", theKey, "read",
		filepath.Join(h.owner.Artifacts(), "f.md"))
	handle := regexp.MustCompile(`rlsec_\w+`).FindString(control)
	if handle == "" || strings.Count(control, canary) != 2 {
		t.Fatalf("control: an agent of the owner's gets %q", control)
	}
	table := h.reaches(handle)
	var asked [][]string
	for _, name := range imports(t) {
		if r, known := table[name]; known && r.none == "" {
			asked = append(append(asked, r.do), r.more...)
		}
	}
	before := h.fingerprint()
	args := []string{"launch", bundle, "--"}
	for _, a := range asked {
		args = append(args, a[:len(a)-1]...)
	}
	h.in("acme_co", "", "secrets", "init")
	status, text := h.in("acme_co", "", args...)
	if status != 0 {
		t.Fatalf("%d %s", status, text)
	}
	h.answers(asked, text)
	if h.fingerprint() != before {
		t.Error("something of the owner's is not as it was")
	}
}

// known holds the table against the functions that there are.
func (h *house) known(t *testing.T, table map[string]reach) {
	t.Helper()
	names := imports(t)
	for _, name := range names {
		if _, known := table[name]; !known {
			t.Errorf("%s: say in this test what it does with what is another tenant's", name)
		}
	}
	for name := range table {
		if !slices.Contains(names, name) {
			t.Errorf("there is no function %s", name)
		}
	}
}

// answers holds each line of what the probe said against what it must be.
func (h *house) answers(asked [][]string, text string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != len(asked) {
		h.t.Fatalf("%d answers to %d questions:\n%s", len(lines), len(asked), text)
	}
	for i, a := range asked {
		question := a[0] + " " + strings.Join(a[1:len(a)-1], " ") + ": "
		answer, ok := strings.CutPrefix(lines[i], question)
		if !ok || !regexp.MustCompile(a[len(a)-1]).MatchString(answer) || strings.Contains(answer, canary) {
			h.t.Errorf("%sis answered %q, want %s", question, answer, a[len(a)-1])
		}
	}
}
