package ask

import (
	"strings"

	"runloop.dev/rlp/internal/record/audit"
)

// An Advice says whether a denial asks anything of the operator.
type Advice struct {
	Act  Act
	Text string
}

// An Act is how much a denial asks of the operator.
type Act uint8

// The acts. What nobody knows better of is [Nothing].
const (
	Nothing Act = iota // unless somebody expected it to be allowed
	Decide             // an operator took it, and may give it back
	Mend               // something is missing or has changed
)

// Advise says whether there is anything to do about what d denied, before anybody looks
// for the edit that would allow it. named says that the input of the run names it.
func Advise(d *audit.DecisionRecord, named bool) Advice {
	if a, known := adviceOf()[d.Reason]; known {
		return a
	}
	if !audit.ByBase(d.Layer, d.Reason) && d.Layer != "" {
		return Advice{Decide, "The agent's own policy asks for it, and a rule of the operator's takes it away."}
	}
	what := "this"
	switch family, _, _ := strings.Cut(d.Cap, "."); family {
	case "fs":
		what = "this path"
	case "net":
		what = "this host"
	}
	text := "The agent's own policy does not ask for " + what + ". "
	switch {
	case d.Target == "":
		return Advice{Nothing, text + "Its author would have to, if it is needed."}
	case named:
		return Advice{Nothing, text + "The input of the run names it: whoever launched the agent asked for something outside of " +
			"its grants, and the denial is what they are for."}
	}
	return Advice{Nothing, text + "If an input, or something that the agent read, named it, the denial is what the policy is for."}
}

// adviceOf is the advice for reasons that are no question of who holds what.
func adviceOf() map[string]Advice {
	return map[string]Advice{
		"untrusted_context": {Nothing, "The run had taken in content that is not trusted, and may not do this any more, so that " +
			"nothing which that content says is done. The next run begins without."},
		"delegate_floor": {Nothing, "Another run launched this one, and such runs never may, whatever their policy asks for."},
		"address_not_permitted": {Nothing, "The name leads to an address inside this machine or its network, which is reached by " +
			"its number alone, if a grant has that."},
		"server_name_mismatch": {Nothing, "A program connected to a name that it may, and asked on the connection for another one, or " +
			"for none that can be seen."},
		"not_confirmed":     {Nothing, "Somebody was asked, and did not say yes."},
		"tool_hidden":       {Decide, "A rule of the operator's takes this call away."},
		"lease_expired":     {Decide, "It was granted for a time or for a number of uses, and that is over."},
		"rate_limited":      {Decide, "It was asked too often in too short a time. Raise the limit if the agent needs to."},
		"budget_exhausted":  {Decide, "A limit of the run was reached. Raise it if the agent needs more."},
		"approval_pending":  {Mend, "It waits for somebody to decide."},
		"server_changed":    {Mend, "An MCP server says something else of its tools than it is known by: look at it with rlp mcp list."},
		"secret_unknown":    {Mend, "The vault has no such secret: rlp secrets put stores it."},
		"unavailable":       {Mend, "What it needs is not there, whatever the policy says: rlp doctor finds what is missing."},
		"audit_unavailable": {Mend, "It could not be recorded, and what is not recorded does not happen: rlp doctor says why."},
	}
}
