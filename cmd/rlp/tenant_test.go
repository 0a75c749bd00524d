package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/base/home"
)

// A house is a home in which one tenant, the owner, has something of each kind.
// All of it that may be printed has the word canary in it.
type house struct {
	t     *testing.T
	dir   string // the home
	owner home.Home
	run   string // a run of the owner's
	out   string // files outside the home: bundles, a backup
}

const canary = "CANARY"

// emptyModule is a module whose _start does nothing.
const emptyModule = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x0a\x01\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b"

// in runs one command for a tenant and returns its status and all that it printed.
func (h *house) in(tenant, stdin string, args ...string) (status int, text string) {
	h.t.Helper()
	var out bytes.Buffer
	ctx := h.t.Context()
	if slices.Contains(args, "tail") { // which looks once, and would wait for more
		c, cancel := context.WithCancel(ctx)
		cancel()
		ctx = c
	}
	status = invoke(ctx, environment{
		args: append([]string{"--home", h.dir, "--tenant", tenant}, args...), env: []string{"HOME=" + h.out, "PATH=" +
			os.Getenv("PATH"), "RLP_SECRET_acme_0canary_0key=" + canary},
		stdin: strings.NewReader(stdin), stdout: &out, stderr: &out,
	})
	return status, out.String()
}

// must runs a command of the owner's that succeeds.
func (h *house) must(stdin string, args ...string) string {
	h.t.Helper()
	status, text := h.in(h.owner.Tenant(), stdin, args...)
	if status != 0 {
		h.t.Fatalf("%v: %d %s", args, status, text)
	}
	return text
}

func (h *house) write(path, text string) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// bundle makes a bundle of an agent that does nothing and has one placeholder.
func (h *house) bundle(dir, name string) string {
	h.write(filepath.Join(dir, "manifest.toml"), `[agent]
name = "`+name+`"
version = "1.0.0"
kind = "wasm32-wasip1"
description = "`+name+` `+canary+`"
entry_wasm = { path = "a.wasm" }
[params]
x = { kind = "dir", description = "a folder" }
`)
	h.write(filepath.Join(dir, "a.wasm"), emptyModule)
	h.write(filepath.Join(dir, "policy.caps"), "schema = \"0.2\"\n[capabilities]\nkb_read = [\"notes\"]\nfs = [\"{x}\"]\n")
	return dir
}

const (
	victimAgent = "canary_agent"
	theSecret   = "runloop/canary/key"
	theKey      = "canary-key"
)

// newHouse makes a home and what its owner has there.
func newHouse(t *testing.T, tenant string) *house {
	t.Helper()
	h := &house{t: t, dir: filepath.Join(t.TempDir(), "home"), out: t.TempDir()}
	var err error
	if h.owner, err = home.Open(h.dir, tenant); err != nil {
		t.Fatal(err)
	}
	h.write(filepath.Join(h.owner.Artifacts(), "f.md"), canary+" artifact\n")
	h.write(filepath.Join(h.owner.Artifacts(), "override.toml"), canary+" = 1\n")
	h.write(filepath.Join(h.owner.Artifacts(), "input.json"), `"`+canary+`"`)
	h.write(filepath.Join(h.owner.Work(victimAgent, "run"), "f.md"), canary+" work\n")
	h.bundle(filepath.Join(h.owner.Agents(), victimAgent), victimAgent)
	h.bundle(filepath.Join(h.out, "own"), "own")
	h.write(filepath.Join(h.out, "extra.toml"), "[capabilities]\nfs = [\"/"+canary+"\"]\n")
	h.pins()
	h.must("", "launch", filepath.Join(h.owner.Agents(), victimAgent), "--param", "x="+h.owner.Artifacts(), "--override",
		filepath.Join(h.out, "extra.toml"))
	h.must("", "kb", "put", "notes", theKey, canary+" value")
	h.must("", "secrets", "init")
	h.must(canary+"-secret-value", "secrets", "put", theSecret)
	h.must("", "kb", "backup", filepath.Join(h.out, "backup"))
	var r struct {
		Run string `json:"run_id"`
	}
	first, _, _ := strings.Cut(h.must("", "audit", "list", "--json"), "\n")
	if err := json.Unmarshal([]byte(first), &r); err != nil {
		t.Fatal(err)
	}
	h.run = r.Run
	return h
}

// own is the home as an intruder's things lie in it.
func (h *house) own(name string) string { return filepath.Join(h.out, name) }

// A crossing is one command that names what is the owner's.
type crossing struct {
	args   []string
	stdin  string
	status int
	shown  bool // to the owner the same command shows a canary: the control
}

func cross(status int, args ...string) crossing { return crossing{args: args, status: status} }

func (c crossing) showing() crossing {
	c.shown = true
	return c
}

// crossings are those of every command; none at all, for a command that takes
// nothing which could be another tenant's, says why in the table below.
func (h *house) crossings() map[string][]crossing {
	art, agent, own := h.owner.Artifacts(), filepath.Join(h.owner.Agents(), victimAgent), h.own("own")
	override, x := filepath.Join(art, "override.toml"), "x="+h.out
	bundles := func(words ...string) []crossing {
		var tail []string
		if words[len(words)-1] == "explain" {
			tail = []string{"fs:read:/x"}
		}
		with := func(args ...string) []string { return append(append(slices.Clone(words), args...), tail...) }
		return []crossing{
			cross(77, with(agent)...),
			cross(77, with(own, "--param", x, "--override", override)...),
			cross(77, with(own, "--param", "x="+art)...),
			cross(77, with(own, "--param", "x="+h.owner.Work(victimAgent, "run"))...),
		}
	}
	return map[string][]crossing{
		"launch": append(bundles("launch"), cross(77, "launch", own, "--param", x, "--input",
			"@"+filepath.Join(art, "input.json")),
			cross(77, "launch", "--remote", agent), cross(77, "launch", "--remote", own, "--override", override),
			cross(77, "launch", "--remote", own, "--input", "@"+filepath.Join(art, "input.json"))),
		"caps lint": {
			cross(77, "caps", "lint", agent), cross(77, "caps", "lint", override),
			cross(65, "caps", "lint", "--agent", victimAgent, h.own("extra.toml")),
		},
		"caps show": bundles("caps", "show"), "caps diff": bundles("caps", "diff"), "caps explain": bundles("caps",
			"explain"),
		"caps suggest": {
			cross(77, "caps", "suggest", agent), cross(65, "caps", "suggest", h.run).showing(), cross(65, "caps", "suggest",
				"--override", h.run[:13]).showing(),
		},
		"caps whatif": {
			cross(77, "caps", "whatif", "--override", override), cross(65, "caps", "whatif", "--deny", "kb:read:*", "--run",
				h.run),
			cross(65, "caps", "whatif", "--deny", "kb:read:*", "--run", h.run[:13]), cross(0, "caps", "whatif", "--deny",
				"kb:read:*", "--agent", victimAgent),
		},
		"caps override": {
			cross(77, "caps", "override", agent), cross(77, "caps", "override", own, override),
			cross(77, "caps", "override", own, override, "--save"),
		},
		"token new":  {cross(77, "token", "new", "--name", "x", "--grant", override)},
		"audit scan": {cross(77, "audit", "scan", agent), cross(0, "audit", "scan", "installed")},
		"audit list": {
			cross(0, "audit", "list").showing(), cross(0, "audit", "list", "--run", h.run, "--json").showing(),
			cross(0, "audit", "list", "--agent", victimAgent, "--json").showing(), cross(65, "audit", "list", "--run",
				h.run[:13]).showing(),
		},
		"runs list":   {cross(0, "runs", "list", "--json").showing(), cross(0, "runs", "list", "--agent", victimAgent)},
		"runs show":   {cross(65, "runs", "show", h.run).showing(), cross(65, "runs", "show", h.run[:13]).showing()},
		"runs wait":   {cross(65, "runs", "wait", h.run)},
		"runs cancel": {cross(65, "runs", "cancel", h.run)},
		"runs diff":   {cross(65, "runs", "diff", h.run, h.run)},
		"audit show":  {cross(65, "audit", "show", h.run).showing()},
		"audit export": {
			cross(0, "audit", "export").showing(), cross(65, "audit", "export", "--run", h.run[:13]).showing(),
			cross(77, "audit", "export", "--output", filepath.Join(art, "x")), cross(77, "audit", "export", "--cursor",
				filepath.Join(art, "x")),
		},
		"audit tail": {cross(0, "audit", "tail", "--run", h.run), cross(0, "audit", "tail", "--since", "1h")},
		"audit verify": {
			cross(0, "audit", "verify"), cross(65, "audit", "verify", "--run", h.run), cross(77, "audit", "verify",
				"--checkpoint", filepath.Join(art, "f.md")),
			cross(77, "audit", "verify", "--since", filepath.Join(art, "f.md")), cross(77, "audit", "verify", "--key",
				filepath.Join(h.owner.Root(), "kb")),
			cross(77, "audit", "verify", "--proof", filepath.Join(art, "f.md"), "--key", h.own("key")),
		},
		"audit proof": {
			cross(65, "audit", "proof", "--run", h.run), cross(65, "audit", "proof", "--run", h.run[:13]),
			cross(77, "audit", "proof", "--since", filepath.Join(art, "f.md")),
			cross(77, "audit", "proof", "1", "--out", filepath.Join(art, "x")),
		},
		"audit checkpoint": {cross(0, "audit", "checkpoint"), cross(77, "audit", "checkpoint", "--out",
			filepath.Join(art, "x"))},
		"audit key": {cross(0, "audit", "key")}, "audit prune": {cross(0, "audit", "prune", "--keep", "0h")},
		"agent new":   {cross(77, "agent", "new", "x", "--dir", filepath.Join(art, "x"))},
		"agent build": {cross(77, "agent", "build", agent)},
		"agent pack": {
			cross(77, "agent", "pack", filepath.Join(agent, "probe.wasm")),
			cross(77, "agent", "pack", filepath.Join(own, "probe.wasm"), "--dir", filepath.Join(art, "x")),
		},
		"agent install": {cross(77, "agent", "install", agent), cross(0, "agent", "install", own)},
		"agent list":    {cross(0, "agent", "list").showing()},
		"agent remove": {cross(1, "agent", "remove", victimAgent), cross(2, "agent", "remove", "../tenants/acme/agents/"+
			victimAgent)},
		"agent inspect":  {cross(77, "agent", "inspect", agent).showing()},
		"secrets init":   {cross(0, "secrets", "init")},
		"secrets list":   {cross(0, "secrets", "list").showing()},
		"secrets put":    {{args: []string{"secrets", "put", theSecret + "2"}, stdin: "something else", status: 0}},
		"secrets delete": {cross(1, "secrets", "delete", theSecret)},
		"kb domains":     {cross(0, "kb", "domains")},
		"kb get":         {cross(1, "kb", "get", "notes", theKey, "--raw").showing()},
		"kb put": {
			cross(0, "kb", "put", "notes", "mine", "value"), cross(77, "kb", "put", "notes", "a",
				"@"+filepath.Join(art, "f.md")),
			cross(1, "kb", "put", "notes", theKey, "value", "--revision", "1"),
		},
		"kb delete": {cross(1, "kb", "delete", "notes", theKey)},
		"kb list":   {cross(0, "kb", "list", "notes").showing()},
		"kb search": {cross(0, "kb", "search", "notes", canary, "--raw").showing()},
		"kb why":    {cross(1, "kb", "why", "notes", theKey).showing()},
		"kb verify": {cross(0, "kb", "verify")},
		"kb backup": {cross(77, "kb", "backup", filepath.Join(art, "backup"))},
		"kb restore": {
			cross(65, "kb", "restore", h.own("backup")), cross(65, "kb", "restore", h.own("backup"), "--replace"),
			cross(77, "kb", "restore", filepath.Join(art, "f.md")),
		},
		"mcp list":   {cross(0, "mcp", "list").showing()},
		"mcp accept": {cross(2, "mcp", "accept", theServer, "--yes").showing()},
		"mcp adopt":  {cross(77, "mcp", "adopt", filepath.Join(art, "f.md"), "--client", "cursor")},
		"run":        {cross(77, "run", "--policy", filepath.Join(art, "f.md"), "--", "/bin/true")},
		"mcp wrap":   {cross(77, "mcp", "wrap", "intruder", "--policy", filepath.Join(art, "f.md"), "--", "/bin/true")},
		"kb import": {
			cross(77, "kb", "import", art, "--domain", "notes"), cross(77, "kb", "import", filepath.Join(h.owner.Root(), "kb"),
				"--domain", "notes"),
			cross(65, "kb", "import", h.dir, "--domain", "notes", "--hidden"), cross(0, "kb", "import", filepath.Dir(h.dir),
				"--domain", "notes", "--hidden"),
		},
	}
}

// harmless are the commands that take nothing which could be a tenant's, and why.
var harmless = map[string]string{
	"caps schema":           "prints what is the same for all",
	"caps families":         "prints what is the same for all",
	"caps profiles":         "the operator's profiles are the same for all tenants",
	"presets list":          "the same of presets",
	"presets show":          "the same",
	"version":               "prints what is the same for all",
	"help":                  "prints what is the same for all",
	"completion bash":       "prints what is the same for all",
	"completion zsh":        "prints what is the same for all",
	"completion fish":       "prints what is the same for all",
	"completion powershell": "prints what is the same for all",
	"model-host":            "opens no home",
	"config get":            "the settings are one file of the operator's, the same for all tenants",
	"config list":           "the same",
	"config path":           "the same",
	"config set":            "the same",
	"doctor":                "looks at the machine, the settings and the tenant's own folders, and takes nothing",
	"daemon start":          "one daemon serves all tenants of a home",
	"daemon status":         "one helper serves all tenants of a home; it says how many launches it did, and of nobody",
	"daemon stop":           "the same",
	"man":                   "opens no home, and writes what is the same for all where it is told to",
	"serve":                 "serves all tenants of a home, each to who is proved to be of it, and takes no --tenant",
	"token list": "the tokens of a home are one list of its operator's; it says whose each is, and of none " +
		"what it is",
	"token revoke": "the same",
	"top":          "asks the service, which says what is whose",
	"lanes":        "says what the machine can keep programs from, and takes names of lanes alone",
}

// commandsOf are the names of all commands that do something.
func commandsOf(c *cobra.Command, above string) []string {
	var list []string
	for _, sub := range c.Commands() {
		name := strings.TrimSpace(above + " " + sub.Name())
		if sub.HasSubCommands() {
			list = append(list, commandsOf(sub, name)...)
			continue
		}
		list = append(list, name)
	}
	return list
}

// fingerprint is the digest of everything that a tenant has.
func (h *house) fingerprint() string {
	h.t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(h.owner.Root(), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if p == filepath.Join(h.dir, "tenants") || p == filepath.Join(h.dir, "run") {
			return fs.SkipDir
		}
		if d.Type().IsRegular() {
			data, err := os.ReadFile(p)
			fmt.Fprintf(sum, "%s %d %x %v\n", p, len(data), sha256.Sum256(data), err)
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// Every command is tried for a tenant with what is another's: its run, agent,
// keys, secrets, files and backup. None shows anything of it, and none changes
// it. A command that is in neither table fails the test, as does one that is not
// there any more.
//
//rlp:holds K4 K57 K73
func TestNoCommandCrossesTenants(t *testing.T) {
	for owner, intruders := range map[string][]string{"acme": {"acme_co", "default", "ACME", "acm"}, "default": {"acme"}} {
		if testing.Short() {
			intruders = intruders[:1]
		}
		h := newHouse(t, owner)
		table := h.crossings()
		h.complete(table)
		h.control(table)
		before := h.fingerprint()
		for _, intruder := range intruders {
			h.tryAll(intruder, table)
		}
		if h.fingerprint() != before {
			t.Errorf("something of %s is not as it was", owner)
		}
		for _, args := range [][]string{
			{"kb", "get", "notes", theKey, "--raw"},
			{"audit", "show", h.run},
			{"secrets", "list"},
		} {
			if text := h.must("", args...); !strings.Contains(strings.ToUpper(text), canary) {
				t.Errorf("%s lost it: %v: %s", owner, args, text)
			}
		}
	}
}

// complete holds the tables against the commands that there are.
func (h *house) complete(table map[string][]crossing) {
	root := rootCommand(&app{})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	names := commandsOf(root, "")
	for _, name := range names {
		if _, here := table[name]; !here && harmless[name] == "" {
			h.t.Errorf("rlp %s: say in this test what it does with what is another tenant's", name)
		}
	}
	for name := range table {
		if !slices.Contains(names, name) {
			h.t.Errorf("there is no command %s", name)
		}
	}
	for name := range harmless {
		if !slices.Contains(names, name) {
			h.t.Errorf("there is no command %s", name)
		}
	}
}

// control runs as the owner what shows something.
func (h *house) control(table map[string][]crossing) {
	for _, list := range table {
		for _, c := range list {
			if !c.shown {
				continue
			}
			if text := h.must(c.stdin, c.args...); !strings.Contains(strings.ToUpper(text), canary) {
				h.t.Errorf("control: %v shows its owner %q", c.args, text)
			}
		}
	}
}

// tryAll runs every crossing as the intruder.
func (h *house) tryAll(intruder string, table map[string][]crossing) {
	names := slices.Sorted(maps.Keys(table))
	// a vault first
	slices.SortStableFunc(names, func(a, b string) int { return strings.Index(b, "init") - strings.Index(a, "init") })
	for _, name := range names {
		for _, c := range table[name] {
			status, text := h.in(intruder, c.stdin, c.args...)
			if status != c.status {
				h.t.Errorf("%s as %s: %v: exit status %d, want %d: %s", name, intruder, c.args, status, c.status, text)
			}
			for _, arg := range c.args { // what was given may be said again
				if _, path, ok := strings.Cut(arg, "="); ok {
					arg = path
				}
				if strings.Contains(strings.ToUpper(arg), canary) {
					text = strings.ReplaceAll(text, arg, "")
				}
			}
			if strings.Contains(strings.ToUpper(text), canary) {
				h.t.Errorf("%s as %s: %v shows what is another's: %s", name, intruder, c.args, text)
			}
		}
	}
}

// A tenant has a name, or there is no home to open.
//
//rlp:holds K1 K2
func TestEveryCommandWantsATenant(t *testing.T) {
	h := &house{t: t, dir: t.TempDir(), out: t.TempDir()}
	for _, tenant := range []string{"", ".", "..", "a/b", "a b", "a.b", "é", "a\x00", strings.Repeat("a", 65)} {
		for _, args := range [][]string{
			{"launch", "x"},
			{"kb", "domains"},
			{"audit", "list"},
			{"secrets", "list"},
			{"caps", "show", "x"},
		} {
			if status, text := h.in(tenant, "", args...); status != 2 || !strings.Contains(text, "--tenant") {
				t.Errorf("%v for %q: %d %s", args, tenant, status, text)
			}
		}
	}
	if entries, err := os.ReadDir(h.dir); err != nil || len(entries) != 0 {
		t.Errorf("something was made for nobody: %v %v", entries, err)
	}
	if status, text := h.in(strings.Repeat("aZ-_", 16), "", "kb", "domains"); status != 0 {
		t.Errorf("control: %d %s", status, text)
	}
}
