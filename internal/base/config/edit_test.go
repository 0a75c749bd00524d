package config_test

import (
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/config"
)

// Each setting is listed with its value and with who says so.
func TestListSaysWhoSaysSo(t *testing.T) {
	text := "[security]\nconfirm = \"refuse\"\n[limits]\nwall_time_ms = 5\n[mcp.servers.x]\ncommand = [\"/bin/x\"]\n"
	env := []string{"RUNLOOP__KB__DURABILITY=run", "RUNLOOP__LOG__DAYS=7"}
	list, err := config.List("config.toml", []byte(text), env)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		value  any
		source string
	}{
		"security.confirm":        {"refuse", "config.toml:2:11"},
		"limits.wall_time_ms":     {int64(5), "config.toml:4:16"},
		"kb.durability":           {"run", "environment variable RUNLOOP__KB__DURABILITY"},
		"log.days":                {int64(7), "environment variable RUNLOOP__LOG__DAYS"},
		"log.bytes":               {int64(1 << 30), "default"},
		"exec.ulimit_nofile":      {"1024:1024", "default"},
		"security.allow_unsigned": {true, "default"},
	} {
		found, err := config.Select(list, name)
		if err != nil || len(found) != 1 || found[0] != (config.Shown{Name: name, Value: want.value, Source: want.source}) {
			t.Errorf("%s: %+v, %v; want %+v", name, found, err, want)
		}
	}
	if found, err := config.Select(list, "security"); err != nil || len(found) < 8 {
		t.Errorf("a section: %v, %v", found, err)
	}
	_, err = config.Select(list, "security.confirn")
	if err == nil || !strings.Contains(err.Error(), "security.confirm") {
		t.Errorf("no setting: %v", err)
	}
}

// An edit keeps comments, and refuses what the reader of the file would.
func TestEditRefusesWhatTheReaderDoes(t *testing.T) {
	const was = "# mine\n[security]\nconfirm = \"ask\" # at the terminal\n"
	for _, c := range []struct{ name, value, want string }{
		{"security.confirm", "refuse", "# mine\n[security]\nconfirm = \"refuse\" # at the terminal\n"},
		{"security.caps.fail_on_empty", "true", was + "\n[security.caps]\nfail_on_empty = true\n"},
		{"limits.wall_time_ms", "1000", was + "\n[limits]\nwall_time_ms = 1000\n"},
		{"kb.domains", `["todo"]`, was + "\n[kb]\ndomains = [\"todo\"]\n"},
	} {
		got, err := config.Edit("config.toml", []byte(was), c.name, c.value)
		if err != nil || string(got) != c.want {
			t.Errorf("%s = %s: %q, %v", c.name, c.value, got, err)
		}
	}
	for _, c := range []struct{ name, value, want string }{
		{"security.confirn", "refuse", "security.confirm"},
		{"security.confirm", "maybe", "is one of ask, refuse, allow"},
		{"security.caps.fail_on_empty", "1", "a boolean"},
		{"limits.wall_time_ms", "soon", `must be a TOML value, not "soon"`},
		{"audit.publish", "https://u:pw123@h/v1?key=K", `audit.publish must be a TOML value, not "https://h/v1"`},
		{"limits.wall_tine_ms", "5", "wall_time_ms"},
		{"security.secrets.provider", "exec", "needs security.secrets.command"},
		{"limits", "5", "a table"},
	} {
		got, err := config.Edit("config.toml", []byte(was), c.name, c.value)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s = %s: %q, %v; want %q", c.name, c.value, got, err, c.want)
		}
	}
}
