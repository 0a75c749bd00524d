package config

import (
	"strings"

	"runloop.dev/rlp/internal/base/tomlfile"
)

// refuse records an error for every setting that asks for a control which this
// version does not have. To start without it would be to drop it silently.
func refuse(w *tomlfile.Walk, root *tomlfile.Table, c *Config) {
	for _, r := range []struct {
		name  string
		asked bool
		msg   string
	}{
		{"security.allow_unsigned", !c.Security.AllowUnsigned, "verifies no signatures yet"},
		{"kb.encryption", c.KB.Encryption, "does not encrypt the knowledge base yet"},
	} {
		if r.asked {
			w.Errorf(placeOf(root, r.name), "remove the setting to run without it", "%s: this version of rlp %s", r.name, r.msg)
		}
	}
}

// helperProgram refuses the exec provider of secrets without a program.
func helperProgram(w *tomlfile.Walk, root *tomlfile.Table, c *Config) {
	command := c.Security.SecretsCommand
	const example = `command = ["/usr/bin/pass", "show", "{id}"]`
	switch {
	case len(command) == 0 && c.Security.SecretsProvider == "exec":
		w.Errorf(placeOf(root, "security.secrets.provider"), example,
			"security.secrets.provider = \"exec\" needs security.secrets.command")
	case len(command) > 0 && absolute(command[0]) != "":
		w.Errorf(placeOf(root, "security.secrets.command"), example, "security.secrets.command %s", absolute(command[0]))
	}
}

func placeOf(t *tomlfile.Table, name string) tomlfile.Pos {
	key, rest, more := strings.Cut(name, ".")
	e, ok := t.Get(key)
	switch {
	case !ok:
		return t.Pos
	case more && e.Value.Table != nil:
		return placeOf(e.Value.Table, rest)
	}
	return e.Value.Pos
}
