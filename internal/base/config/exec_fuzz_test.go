package config_test

import (
	"strconv"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/base/config"
)

// Whatever is accepted is one word of a command line, and means there what it
// means here: no flag, no second field, no root.
func FuzzExecWords(f *testing.F) {
	for _, s := range []string{
		"65532:65532", "0:1", "docker.io/library/alpine:3", "-v/:/host", "unconfined",
		"rlp-default", "1024:4096", "9", "/usr/bin/podman", "a\nb", "1:2:3", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, key := range []string{"USER", "IMAGE", "APPARMOR", "ENGINE", "ULIMIT_NOFILE"} {
			c, err := config.Parse("config.toml", nil, []string{
				"RUNLOOP__EXEC__" + key + "=" + s,
				"RUNLOOP__EXEC__LANE=container",
			})
			if err != nil {
				continue
			}
			if s == "" || s[0] == '-' || strings.ContainsFunc(s, func(r rune) bool {
				return r <= ' ' || r > '~' ||
					strings.ContainsRune(",;\"'\\=", r)
			}) && key != "ENGINE" {
				t.Errorf("%s = %q", key, s)
			}
			x := c.Exec
			switch key {
			case "USER":
				uid, gid, _ := strings.Cut(x.User, ":")
				u, err1 := strconv.ParseInt(uid, 10, 32)
				g, err2 := strconv.ParseInt(gid, 10, 32)
				if err1 != nil || err2 != nil || u <= 0 || g <= 0 {
					t.Errorf("user %q", x.User)
				}
			case "APPARMOR":
				if x.AppArmor == "unconfined" || strings.ContainsAny(x.AppArmor, ":=") {
					t.Errorf("apparmor %q", x.AppArmor)
				}
			case "ULIMIT_NOFILE":
				if l := x.UlimitNofile; l.Soft < 1 || l.Hard < l.Soft {
					t.Errorf("ulimit %q: %+v", s, l)
				}
			case "ENGINE":
				if !strings.HasSuffix(x.Engine, "podman") {
					t.Errorf("engine %q", x.Engine) // docker needs an image
				}
			}
		}
	})
}
