package doctor

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/owner/ownertest"
	"runloop.dev/rlp/internal/record/evidence"
	"runloop.dev/rlp/launcher/ask"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/lint"
)

const secretID = "runloop/model/openai"

// healthy is a home that nothing is wrong with, on a machine that has all it needs.
func healthy(t *testing.T) Patient {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "home")
	if _, err := home.Open(dir, home.DefaultTenant); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, `[[model.providers]]
id = "openai"
kind = "openai"
base_url = "https://api.openai.com/v1"
secret_id = "`+secretID+`"
[mcp.servers.files]
command = ["/usr/bin/files"]
`)
	return Patient{
		Home: dir, Tenant: home.DefaultTenant, Now: time.Now(), UID: os.Geteuid(),
		Free: func(string) (uint64, error) { return 1 << 40, nil },
		Lanes: func(_ context.Context, names []string) (ask.LaneSurvey, error) {
			doc := ask.LaneSurvey{Auto: "ns"}
			for _, name := range names {
				doc.Lanes = append(doc.Lanes, ask.Lane{Name: name, Available: true})
			}
			return doc, nil
		},
		Secrets: func(context.Context, home.Home) ([]string, error) { return []string{secretID}, nil },
		Program: func(string) error { return nil },
		Policies: func(h home.Home, cfg config.Config) []policy.Finding {
			return lint.Home(&compose.Reader{HomeDir: dir, Tenant: home.DefaultTenant, Say: func(string) {}}, h, cfg)
		},
	}
}

// put writes a file of the home with a mode.
func put(t *testing.T, p *Patient, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(p.Home, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Each thing that is wrong is found, by the check of its name alone, with what mends it.
//
//rlp:holds D10 D9
func TestWhatIsWrongIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		spoil         func(t *testing.T, p *Patient)
		check, mended string // "": nothing is wrong
	}{
		"control": {func(*testing.T, *Patient) {}, "", ""},
		"no home yet": {func(t *testing.T, p *Patient) {
			p.Home = filepath.Join(p.Home, "none")
		}, "", ""},
		"home of another owner": {func(t *testing.T, p *Patient) {
			if p.UID == 0 { // what belongs to root is everybody's to use
				if err := os.Chown(p.Home, 4711, -1); err != nil {
					t.Fatal(err)
				}
				return
			}
			p.UID++
		}, "home", "chown"},
		"permissions": {func(t *testing.T, p *Patient) {
			if err := os.Chmod(filepath.Join(p.Home, "caps", "overrides"), 0o777); err != nil {
				t.Fatal(err)
			}
		}, "permissions", "chmod go-w"},
		"a group with others in it": {func(t *testing.T, p *Patient) {
			if err := ownertest.Share(filepath.Join(p.Home, "caps", "overrides"), 0o770); err != nil {
				t.Fatal(err)
			}
		}, "permissions", "chmod g-w"},
		"a vault that a group can write": {func(t *testing.T, p *Patient) {
			dir := home.At(p.Home, p.Tenant).Secrets()
			if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o770)); err != nil {
				t.Fatal(err)
			}
		}, "permissions", "chmod g-w"},
		"full disk": {func(_ *testing.T, p *Patient) {
			p.Free = func(string) (uint64, error) { return 1 << 20, nil }
		}, "disk", "rlp audit prune"},
		"clock":    {func(_ *testing.T, p *Patient) { p.Now = p.Now.Add(-time.Hour) }, "clock", "timedatectl"},
		"settings": {func(t *testing.T, p *Patient) { write(t, p.Home, "[sekurity]\n") }, "settings", "security"},
		"settings of a wrong mode": {func(t *testing.T, p *Patient) {
			put(t, p, "config.toml", "", 0o666)
		}, "settings", "chmod go-w "},
		"override of a wrong mode": {func(t *testing.T, p *Patient) {
			put(t, p, "caps/overrides/u2.toml", "[deny]\ncapabilities = []\n", 0o666)
		}, "policies", "chmod go-w "},
		"override that is no TOML": {func(t *testing.T, p *Patient) {
			put(t, p, "caps/overrides/u2.toml", "[deny\n", 0o600)
		}, "policies", "edit "},
		"profile that is refused": {func(t *testing.T, p *Patient) {
			put(t, p, "caps/profiles/mine.toml", "[capabilities]\nkb_raed = []\n", 0o600)
		}, "policies", "kb_read"},
		"template of a wrong mode": {func(t *testing.T, p *Patient) {
			put(t, p, "caps/templates/mine.toml", "", 0o662)
		}, "policies", "chmod go-w "},
		"no such profile": {func(t *testing.T, p *Patient) {
			write(t, p.Home, "[security]\nprofile = \"strict\"\n")
		}, "policies", "rlp config set security.profile NAME"},
		"no such grant": {func(t *testing.T, p *Patient) {
			write(t, p.Home, "[security]\nrun_grant = \"sandbox_compute_and_stor\"\n")
		}, "policies", "rlp config set security.run_grant sandbox_compute_and_store"},
		"override of an agent that is called otherwise": {func(t *testing.T, p *Patient) {
			put(t, p, "agents/wordcount/manifest.toml", "", 0o600)
			put(t, p, "caps/overrides/wordcounts.toml", "[deny]\ncapabilities = []\n", 0o600)
		}, "policies", "did you mean wordcount.toml?"},
		"override of an agent that ran": {func(t *testing.T, p *Patient) {
			put(t, p, "log/2026-01-02.jsonl", `{"msg":"run_start","agent":"wordcount"}`+"\n", 0o600)
			put(t, p, "caps/overrides/wordcount.toml", "[deny]\ncapabilities = []\n", 0o600)
		}, "", ""},
		"key of the log": {func(t *testing.T, p *Patient) {
			if _, err := evidence.MakeKey(p.Home, p.Tenant); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(p.Home, evidence.KeyFile), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "keys", "chmod 600 "},
		"settings that cannot be read, and no lane": {func(t *testing.T, p *Patient) {
			write(t, p.Home, "[security\n")
			p.Lanes = func(context.Context, []string) (ask.LaneSurvey, error) {
				return ask.LaneSurvey{}, errors.New("settings")
			}
		}, "settings", "edit "},
		"permissions, and no lane": {func(t *testing.T, p *Patient) {
			if err := os.Chmod(filepath.Join(p.Home, "caps", "overrides"), 0o777); err != nil {
				t.Fatal(err)
			}
			p.Lanes = func(context.Context, []string) (ask.LaneSurvey, error) { return ask.LaneSurvey{}, errors.New("home") }
		}, "permissions", "chmod go-w "},
		"provider key": {func(_ *testing.T, p *Patient) {
			p.Secrets = func(context.Context, home.Home) ([]string, error) { return nil, nil }
		}, "providers", "rlp secrets put " + secretID},
		"runtime": {func(_ *testing.T, p *Patient) {
			p.Program = func(string) error { return errors.New("no such file") }
		}, "runtimes", "install it"},
		"no lane": {func(_ *testing.T, p *Patient) {
			p.Lanes = func(context.Context, []string) (ask.LaneSurvey, error) { return ask.LaneSurvey{Reason: "none"}, nil }
		}, "lanes", "apt install bubblewrap"},
		"a lane that lacks something": {func(_ *testing.T, p *Patient) {
			p.Lanes = func(context.Context, []string) (ask.LaneSurvey, error) {
				return ask.LaneSurvey{Auto: "native", Lanes: []ask.Lane{{Name: "native", Available: true, Controls: []ask.Control{
					{Control: "filesystem", Level: "unsupported", Remedy: "sysctl x=1"}, {Control: "network", Level: "enforced"},
				}}}}, nil
			}
		}, "lanes", "sysctl x=1"},
		"stale lock": {func(t *testing.T, p *Patient) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(p.Home, "run", "serve.sock"), Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}, "locks", "rm "},
	} {
		t.Run(name, func(t *testing.T) {
			p := healthy(t)
			c.spoil(t, &p)
			list := Examine(t.Context(), p)
			wrong := slices.DeleteFunc(slices.Clone(list), func(f Finding) bool { return f.Problem == "" })
			switch {
			case c.check == "" && (len(wrong) > 0 || !Well(list)):
				t.Errorf("found %+v", wrong)
			case c.check == "":
			case len(wrong) != 1 || wrong[0].Check != c.check || !strings.Contains(wrong[0].Mend, c.mended) || Well(list):
				t.Errorf("found %+v; want one of %s that is mended by %q", wrong, c.check, c.mended)
			}
			if _, err := os.Stat(filepath.Join(p.Home, "none")); err == nil {
				t.Error("something was made")
			}
		})
	}
}
