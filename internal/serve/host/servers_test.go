package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/mcpclient"
	"runloop.dev/rlp/internal/serve/host/hosttest"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher/compose"
)

// Who may read is told which servers changed which tools, and no path of the home; who
// may not is told nothing.
func TestChangedServersAreTold(t *testing.T) {
	h := testingHost(t, "")
	at, err := h.as("default", unsaid).Home()
	if err != nil {
		t.Fatal(err)
	}
	tool := func(name, about string) mcpclient.Tool {
		return mcpclient.Tool{Name: name, Description: about, Schema: []byte(`{"type":"object"}`)}
	}
	pin := func(path, server string, tools ...mcpclient.Tool) {
		t.Helper()
		if err := compose.NewPin(server, tools, time.Now()).Write(path, true); err != nil {
			t.Fatal(err)
		}
	}
	pin(compose.PinPath(at, "same"), "same", tool("a", "does a"))
	pin(compose.SeenPath(at, "same"), "same", tool("a", "does a"))
	pin(compose.PinPath(at, "github"), "github", tool("a", "does a"), tool("b", "does b"))
	pin(compose.SeenPath(at, "github"), "github", tool("a", "does a"), tool("b", "does something else"), tool("c", ""))
	h.who.May = service.Read
	list, err := h.ChangedServers(t.Context(), h.who)
	if err != nil || len(list) != 1 || list[0].Server != "github" || strings.Join(list[0].Tools, " ") != "b c" {
		t.Errorf("%+v, %v", list, err)
	}
	if told := fmt.Sprintf("%+v", list); strings.Contains(told, h.home) {
		t.Errorf("it tells where the home is: %s", told)
	}
	h.who.May = service.Launch
	if list, err := h.ChangedServers(t.Context(), h.who); !errors.Is(err, service.ErrForbidden) || list != nil {
		t.Errorf("who may not read is told %+v, %v", list, err)
	}
}

// An agent names the placeholders of its policy, for whoever makes a form of them.
func TestAgentsNameTheirPlaceholders(t *testing.T) {
	h := testingHost(t, "")
	hosttest.Install(t, h.home, "plain", "", importing(t))
	h.put(t, "agents/plain/policy.caps", "schema = \"0.2\"\n[capabilities]\nfs = [\"{notes}\"]\n")
	manifest := filepath.Join(h.home, "agents", "plain", "manifest.toml")
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	h.put(t, "agents/plain/manifest.toml", string(text)+
		"[params]\nnotes = { kind = \"dir\", description = \"the notes\" }\n")
	list, err := h.SomeAgents(t.Context(), h.who, service.AgentQuery{Name: "plain"})
	if want := (service.Param{Name: "notes", Kind: "dir", Description: "the notes"}); err != nil || len(list) != 1 ||
		len(list[0].Params) != 1 || list[0].Params[0] != want {
		t.Errorf("%+v, %v", list, err)
	}
}
