package tomlfile

import (
	"fmt"

	"github.com/pelletier/go-toml/v2"
)

// TOML writes the table as a document, keys in their order, tables last. What
// [Parse] reads from it is the same but for places and comments.
func (t *Table) TOML() (string, error) {
	text, err := toml.Marshal(t.plain(dates))
	if err != nil {
		return "", fmt.Errorf("writing a table as TOML: %w", err)
	}
	return string(text), nil
}

// dates are times where they are moments, and text where they have no time zone.
func dates(v *Value) any {
	if v.Time.IsZero() {
		return v.Str
	}
	return v.Time
}
