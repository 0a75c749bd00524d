package analysis

import (
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

// Carry is what to carry over from the override data.
func Carry(file string, data []byte) (Carried, error) {
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
