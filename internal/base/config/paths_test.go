package config_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/config"
)

// Every field that can hold text says whether it names files: a setting that is
// added without an answer fails here.
func TestEveryTextSaysWhetherItNamesFiles(t *testing.T) {
	tags := map[string]string{}
	untagged(t, reflect.TypeFor[config.Config](), "Config", tags)
	for key, want := range map[string]string{
		"security.secrets.command": "secret arguments", "serve.tls_key": "secret", "serve.tls_cert": "",
		"serve.client_ca":       "",
		"mcp.servers.*.command": "", "exec.engine": "", "exec.rootfs": "", "exec.seccomp": "", "audit.publish": "",
	} {
		if got, there := tags[key]; !there || got != want {
			t.Errorf("%s: %q, %v, want %q", key, got, there, want)
		}
	}
	var missing struct{ A, B string }
	control := &testing.T{}
	untagged(control, reflect.TypeOf(missing), "", map[string]string{})
	if !control.Failed() {
		t.Error("control: fields without a tag pass")
	}
}

// untagged fails for fields of typ that hold text and have no tag, and gathers
// the keys of those that name files.
func untagged(t *testing.T, typ reflect.Type, name string, tags map[string]string) {
	switch typ.Kind() {
	case reflect.String:
		t.Errorf("%s holds text and has no tag `path`", name)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		untagged(t, typ.Elem(), name+"[]", tags)
	case reflect.Map:
		untagged(t, typ.Elem(), name+"[]", tags) // a key is a name, which is never a path
	case reflect.Struct:
		for i := range typ.NumField() {
			f := typ.Field(i)
			tag, tagged := f.Tag.Lookup("path")
			if !tagged {
				untagged(t, f.Type, name+"."+f.Name, tags)
				continue
			}
			if key, words, _ := strings.Cut(tag, ","); key != "-" {
				tags[key] = words
			}
		}
	}
}

func TestPathsOfTheSettings(t *testing.T) {
	text := `
[security.secrets]
provider = "exec"
command = ["/opt/helper", "-c", "/opt/helper.py", "--key=/keys/{name}.age", "show", "https://vault.example/x", "/{id}"]
[serve]
tls_cert = "/etc/tls/cert.pem"
tls_key = "/etc/tls/key.pem"
client_ca = "/etc/tls/../tls/ca.pem"
[audit]
publish = ["file:/mnt/worm", "git:/srv/log", "https://log.example/x"]
[exec]
engine = "/opt/podman"
[security.caps]
untrusted = ["fs:/downloads"]
[mcp.servers.tools2]
command = ["/usr/bin/sh", "-c", "cd /srv/a; exec '/srv/b c/x' -I/srv/inc"]
`
	c, err := load(t, text, `RUNLOOP__SERVE__TLS_KEY=/var/keys/other.pem`)
	if err != nil {
		t.Fatal(err)
	}
	const helper, mcp = "security.secrets.command", "mcp.servers.tools2.command"
	want := []config.NamedPath{
		{helper, "/opt/helper", false},
		{helper, "/opt/helper.py", true},
		{helper, "/keys", true},
		{"audit.publish", "/mnt/worm", false},
		{"audit.publish", "/srv/log", false},
		{"exec.engine", "/opt/podman", false},
		{"serve.tls_cert", "/etc/tls/cert.pem", false},
		{"serve.tls_key", "/var/keys/other.pem", true}, // the environment's
		{"serve.client_ca", "/etc/tls/ca.pem", false},
		{mcp, "/usr/bin/sh", false},
		{mcp, "/srv/a", false},
		{mcp, "/srv/b", false},
		{mcp, "/srv/inc", false},
	}
	got := c.Paths()
	for _, n := range want {
		if !slices.Contains(got, n) {
			t.Errorf("%v is not among them", n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d paths, want %d: %v", len(got), len(want), got)
	}
	if list := config.Default().Paths(); len(list) != 0 {
		t.Errorf("the settings of an empty home name %v", list)
	}
}
