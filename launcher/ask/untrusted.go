package ask

import (
	"fmt"
	"net/url"
	"strings"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/launcher/run"
)

// A Mark is what untrusted content that a run took in took from it.
type Mark struct {
	Cause string   // what came in, as records name it
	Taken []string // of what the run held
	Trust string   // the setting that would trust it; "": none does
	How   string   // the same in words
}

// Marked tells what content that came in took from a run, by the records of the run's
// beginning and of the swap, and which setting of the operator's would trust the
// content; nil: the swap has another reason.
func Marked(start, swap *audit.Event) (*Mark, error) {
	if swap.Kind != audit.KindCapsSwap || swap.Source != policy.Untrusted || len(swap.Layers) > 0 {
		return nil, nil
	}
	n := &Mark{Cause: swap.Label}
	n.Trust, n.How = Trust(swap.Label)
	floor, err := readFloor(start.Floor)
	if err != nil || floor == nil {
		return n, err
	}
	entries, err := entriesOf(start.Effective)
	if err != nil {
		return n, hostErr(err)
	}
	narrowed, err := plan(run.Policy{Base: entries, Layers: []*caps.Layer{floor}})
	if err != nil {
		return n, err
	}
	for _, c := range narrowed.Changes {
		if c.Kind == caps.Revoked && c.Grant.Family != caps.Tool {
			n.Taken = append(n.Taken, c.Grant.String())
		}
	}
	return n, nil
}

// Trust is the setting under [security.caps] that would trust a cause, "" where none
// does, and the same in words.
func Trust(cause string) (setting, how string) {
	word, name, _ := strings.Cut(cause, ":")
	switch word {
	case "http":
		if host := trustedHost(name); host != "" {
			return fmt.Sprintf("trusted_hosts = [%q]", host),
				"add the host under [security.caps] in config.toml, if whatever it answers can be trusted"
		}
	case "kb":
		domain, _, _ := strings.Cut(name, "/")
		return "", fmt.Sprintf("read the value, and store it yourself with rlp kb put; take \"kb:%s\" out of untrusted under "+
			"[security.caps] in config.toml, if it is there", domain)
	case "fs", "exec", "input":
		return "", "take it, or the folder that it lies in, out of untrusted under [security.caps] in config.toml"
	}
	return "", "no setting trusts what an MCP server or an agent answers; caps/profiles/_untrusted.toml says what a run " +
		"holds after it"
}

// trustedHost is the host of an address as trusted_hosts has it.
func trustedHost(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	host := u.Host
	switch {
	case u.Scheme == "http":
		host = "http://" + host
	case u.Scheme != "https":
		return ""
	}
	if u.Scheme == "https" && u.Port() == "443" {
		host = strings.TrimSuffix(host, ":443")
	}
	if _, err := caps.ParseTrustedHost(host); err != nil {
		return ""
	}
	return host
}
