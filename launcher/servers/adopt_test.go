package servers

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/secrets"
)

var update = flag.Bool("update", false, "write what the settings in testdata become")

// memory is a vault for a test.
type memory map[string]string

func (m memory) Get(_ context.Context, id secrets.ID) ([]byte, error) {
	if v, ok := m[id.String()]; ok {
		return []byte(v), nil
	}
	return nil, fs.ErrNotExist
}

func (m memory) Put(_ context.Context, id secrets.ID, v []byte) error {
	m[id.String()] = string(v)
	return nil
}
func (m memory) Delete(context.Context, secrets.ID) error   { return nil }
func (m memory) List(context.Context) ([]secrets.ID, error) { return nil, nil }
func found(name string) (string, error) {
	if slices.Contains([]string{"npx", "uvx", "uv", "node"}, name) {
		return "/usr/bin/" + name, nil
	}
	return "", fs.ErrNotExist
}

// settingsFile is a copy of a client's settings where that client has them.
func settingsFile(t *testing.T, h home.Home, from, at string) Options {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", from))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), at)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o640)); err != nil {
		t.Fatal(err)
	}
	return Options{Home: h, Path: path, Self: "/usr/local/bin/rlp", Look: found}
}

func aHome(t *testing.T) home.Home {
	t.Helper()
	h, err := home.Open(filepath.Join(t.TempDir(), "home"), home.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func planned(t *testing.T, o Options) *Adoption {
	t.Helper()
	a, err := Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// theClients are the settings of each client: what they are in testdata, where the
// client has them, and tokens that are in them.
var theClients = map[string]struct {
	from, at string
	tokens   []string
}{
	"claude": {"claude.json", "u/.claude.json", []string{"ghp_T0ken0fNobody4eC39HqLyjWDarjt", "Pa55word"}},
	"cursor": {"cursor.json", "u/.cursor/mcp.json", nil},
	"vscode": {"vscode.json", "u/.vscode/mcp.json", []string{"tok-4eC39HqLyjWDarjtT1zdp7dc"}},
	"codex": {"codex.toml", "u/.codex/config.toml", []string{
		"ctx7sk-4eC39HqLyjWDarjtT1zdp7dc", "nt-4eC39HqLyjWDarjtT1zdp7dc",
	}},
	"zed": {"zed.json", "u/zed/settings.json", []string{"s3cr3t-4eC39HqLyjWDarjt"}},
}

// The settings of each client become what stands in testdata: nothing changes before
// it is asked for, tokens go into the vault, comments stay, a second time changes
// nothing, and undone they are what they were to the byte.
//
//rlp:holds N19
func TestAdoptingClients(t *testing.T) {
	for name, c := range theClients {
		t.Run(name, func(t *testing.T) {
			h, vault := aHome(t), memory{}
			o := settingsFile(t, h, c.from, c.at)
			was, err := os.ReadFile(o.Path)
			if err != nil {
				t.Fatal(err)
			}
			a := planned(t, o)
			now, err := os.ReadFile(o.Path)
			if err != nil || !bytes.Equal(was, now) || len(vault) > 0 || a.Client != name || !a.Changed() {
				t.Fatalf("it is changed unasked: %v, client %s", err, a.Client)
			}
			var shown []string
			for _, h := range a.Hunks {
				shown = append(append(shown, h.Old...), h.New...)
			}
			if err := a.Write(t.Context(), vault); err != nil {
				t.Fatal(err)
			}
			if now, err = os.ReadFile(o.Path); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "adopted-"+c.from)
			text := strings.ReplaceAll(string(now), h.Root(), "/home/user/.runloop")
			if *update {
				if err := os.WriteFile(golden, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(golden); err != nil || text != string(want) {
				t.Errorf("%v\n%s", err, text)
			}
			for _, token := range c.tokens {
				if !strings.Contains(string(was), token) || strings.Contains(text, token) ||
					strings.Contains(strings.Join(shown, "\n"), token) {
					t.Errorf("the token %s is in the file, or shown", token)
				}
				for _, path := range everyFile(t, h.Root()) {
					if data, err := os.ReadFile(path); err != nil || strings.Contains(string(data), token) {
						t.Errorf("the token %s is in %s, %v", token, path, err)
					}
				}
			}
			if len(vault) != len(c.tokens) {
				t.Errorf("the vault has %d values", len(vault))
			}
			if info, err := os.Stat(o.Path); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			again := planned(t, o)
			for _, s := range again.Servers {
				if again.Changed() || s.State == "wrapped" {
					t.Errorf("again: %+v", s)
				}
			}
			if err := Undo(t.Context(), h, o.Path, vault); err != nil {
				t.Fatal(err)
			}
			if now, err = os.ReadFile(o.Path); err != nil || !bytes.Equal(was, now) {
				t.Errorf("undone it is\n%s%v", now, err)
			}
			if err := Undo(t.Context(), h, o.Path, vault); err == nil {
				t.Error("undone twice")
			}
		})
	}
}

func everyFile(t *testing.T, dir string) (list []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			list = append(list, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// What a server may have is a policy that wrap reads, one that its operator wrote
// stays, and each server that is left is said so, with the reason.
func TestWhatAdoptedServersMayHave(t *testing.T) {
	h := aHome(t)
	o := settingsFile(t, h, "codex.toml", ".codex/config.toml")
	a := planned(t, o)
	mine := filepath.Join(h.Root(), "caps", "servers", "inline.toml")
	err := errors.Join(os.MkdirAll(filepath.Dir(mine), 0o700), os.WriteFile(mine, []byte("# mine\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Write(t.Context(), memory{}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != "# mine\n" {
		t.Errorf("%s %v", text, err)
	}
	for name, want := range map[string][]string{
		"context7": {"registry.npmjs.org", "exec = true", `env = ["LOG_LEVEL"]`},
		"notes":    {`env = ["LOCAL_TOKEN", "NOTES_DIR"]`},
	} {
		text, err := os.ReadFile(filepath.Join(h.Root(), "caps", "servers", name+".toml"))
		if err != nil {
			t.Fatal(err)
		}
		if _, findings := policy.ParseBase(name, text, policy.Options{}); policy.AsError(findings) != nil {
			t.Errorf("%s: %v\n%s", name, findings, text)
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s has no %s:\n%s", name, w, text)
			}
		}
	}
	states := map[string]string{}
	for _, s := range a.Servers {
		states[s.Key] = s.State + " " + s.Why + strings.Join(s.Notes, " ")
	}
	for key, want := range map[string]string{
		"mcp_servers.figma":    "left it is at a URL",
		"mcp_servers.context7": "wrapped ",
		"mcp_servers.notes":    "wrapped ",
	} {
		if !strings.HasPrefix(states[key], want) {
			t.Errorf("%s: %q", key, states[key])
		}
	}
}

// Names that are taken are not given twice, and settings that somebody changed, or a
// token that is another one, are not overwritten.
func TestWhatAdoptingKeeps(t *testing.T) {
	h := aHome(t)
	o := settingsFile(t, h, "claude.json", ".claude.json")
	o.Config.MCP = map[string]config.MCPServer{"postgres_db": {}}
	a := planned(t, o)
	var names []string
	for _, s := range a.Servers {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{"github", "", "mcp_postgres_db", "github_2"}) {
		t.Errorf("%q", names)
	}
	other := memory{"runloop/github/github_personal_access_token": "another"}
	if err := a.Write(t.Context(), other); err == nil || !strings.Contains(err.Error(), "another value") {
		t.Errorf("%v", err)
	}
	vault := memory{}
	if err := a.Write(t.Context(), vault); err != nil {
		t.Fatal(err)
	}
	if err := a.Write(t.Context(), vault); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("%v", err)
	}
	text, err := os.ReadFile(o.Path)
	if err == nil {
		err = os.WriteFile(o.Path, append(text, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := Undo(t.Context(), h, o.Path, vault); err == nil || !strings.Contains(err.Error(), "changed since") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(o.Path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Undo(t.Context(), h, o.Path, memory{}); err == nil {
		t.Error("undone without its tokens")
	}
	if err := Undo(t.Context(), h, o.Path, vault); err != nil {
		t.Error(err)
	}
}

// What is wrong in settings is said with its line and key, and nothing changes.
//
//rlp:holds N19
func TestSettingsThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\"mcpServers\": {\n\"a\": 7}}":                                "3:1: mcpServers.a is",
		"{\n\"mcpServers\": []}":                                          "2:1: mcpServers is",
		"{\"mcpServers\": {\"a\": {\n\"command\": [\"npx\"]}}}":           "2:1: mcpServers.a.command is",
		"{\"mcpServers\": {\"a\": {\"command\": \"npx\",\n\"args\": 1}}}": "2:1: mcpServers.a.args must be a list",
		"{\"mcpServers\": {\"a\": {\"command\": \"npx\",\n\"env\": 1}}}":  "2:1: mcpServers.a.env is",
		"{\"mcpServers\": {\"a\": {\"command\": \"npx\"\n\"args\": []}}}": "2:1: ",
		"{\"mcpServers\": {\"a\": {}, \"a\": {}}}":                        "1:",
	} {
		path := filepath.Join(t.TempDir(), ".mcp.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Plan(Options{Home: aHome(t), Path: path, Self: "/rlp", Look: found})
		var at *tomlfile.Error
		if !errors.As(err, &at) || !strings.HasPrefix(err.Error(), path+":"+want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for path, client := range map[string]string{"/tmp/x.json": "", "/tmp/.mcp.json": "emacs"} {
		if _, err := Plan(Options{Path: path, Client: client}); err == nil || !strings.Contains(err.Error(), "--client") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Whatever members are taken out of an object, and however it is written, what is
// left is the object without them, and every comment.
func TestMembersAreTakenOut(t *testing.T) {
	for _, text := range []string{
		`{"A":1,"B":2,"C":3,"D":4}`,
		`{ "A": 1, "B": 2, "C": 3, "D": 4 }`,
		"{\n  \"A\": 1, // a\n  \"B\": 2, /* , */\n  // b\n  \"C\": 3 , \"D\": 4 // d\n}",
		"{\n  \"A\": 1,\n  \"B\": 2,\n  \"C\": 3 /* c */,\n  \"D\": 4, // d,\n}",
	} {
		for set := range 16 {
			root, err := tomlfile.ParseJSONC("f", []byte(text), 1<<10)
			if err != nil {
				t.Fatal(err)
			}
			gone, want := map[string]bool{}, root.Plain()
			for i, key := range []string{"A", "B", "C", "D"} {
				if set&(1<<i) != 0 {
					gone[key] = true
					delete(want, key)
				}
			}
			got := string(apply([]byte(text), without([]byte(text), tomlfile.Uncommented([]byte(text)), root, gone)))
			now, err := tomlfile.ParseJSONC("f", []byte(got), 1<<10)
			if err != nil || !reflect.DeepEqual(now.Plain(), want) || strings.Count(got, "/") != strings.Count(text, "/") {
				t.Errorf("%q without %v is %q: %v", text, gone, got, err)
			}
		}
	}
}
