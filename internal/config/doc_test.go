package config_test

import (
	"os"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/config"
)

// The settings that docs/model.md shows are settings.
func TestModelSettingsInTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/model.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## config.toml\n")
	rest, _, _ = strings.Cut(rest, "\nA model is named")
	c, err := config.Parse("docs/model.md", []byte(rest), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Model.Providers) != 3 || len(c.Model.Prices) != 2 || !c.Model.Cache || c.Model.Default != "openai:gpt-4o-mini" {
		t.Errorf("%+v", c.Model)
	}
}
