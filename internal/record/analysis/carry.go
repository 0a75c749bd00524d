package analysis

import (
	"strings"

	"runloop.dev/rlp/internal/base/tomlfile"
)

// Carried is what an override says beside its [capabilities]: values of
// placeholders, limits, leases and the rest, of which runs teach nothing. The one
// that takes its place says it as well.
type Carried struct {
	Names  []string // the tables that it is from
	Denied []string // the capabilities under [deny]
	Deny   string   // the other keys of [deny], as lines of TOML
	Tables string   // the other tables, as TOML
}

// Carry is what to carry over from the override data, each path by the name that
// named gives it.
func Carry(file string, data []byte, named func(path string) string) (Carried, error) {
	var c Carried
	root, err := tomlfile.Parse(file, data)
	if err != nil {
		return c, err
	}
	var deny, tables tomlfile.Table
	for _, e := range root.Entries {
		if e.Value.Kind != tomlfile.TableKind || e.Key == "capabilities" {
			continue
		}
		c.Names = append(c.Names, "["+e.Key+"]")
		if e.Key != "deny" {
			if e.Key == "params" || e.Key == "leases" {
				rename(e.Value.Table, named)
			}
			tables.Put(e)
			continue
		}
		for _, d := range e.Value.Table.Entries {
			if d.Key != "capabilities" {
				deny.Put(d)
				continue
			}
			for _, item := range d.Value.Items {
				c.Denied = append(c.Denied, item.Str)
			}
		}
	}
	if c.Deny, err = deny.TOML(); err != nil {
		return c, err
	}
	c.Tables, err = tables.TOML()
	return c, err
}

// rename gives the values of placeholders, and what is leased, other paths.
func rename(t *tomlfile.Table, named func(path string) string) {
	for i := range t.Entries {
		e := &t.Entries[i]
		if e.Value.Kind == tomlfile.String {
			e.Value.Str = named(e.Value.Str)
		}
		if at := strings.IndexByte(e.Key, '/'); at >= 0 {
			e.Key = e.Key[:at] + named(e.Key[at:])
		}
	}
}
