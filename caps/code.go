package caps

// A Code is the stable reason of a decision, as records and guests see it.
type Code uint8

// The codes. The zero Code is a denial, as the zero [Decision] is.
const (
	CapMissing Code = iota
	Granted
	PathNotPermitted
	HostNotPermitted
	HTTPNotPermitted
	MethodNotPermitted
	AddressNotPermitted
	DomainNotPermitted
	SecretNotPermitted
	SecretUnknown
	ProgramNotPermitted
	ModelNotPermitted
	ServerNotPermitted
	AgentNotPermitted
	NotInBase
	NotConfirmed
	LeaseExpired
	ServerChanged
	RouteNotPermitted
	ServerNameMismatch
	InvalidRequest
	Unavailable
	AuditUnavailable
	RateLimited
	BudgetExhausted
	UntrustedContext
	DelegateFloor
	CapsEmpty
	ToolHidden
	NumCodes
)

var codes = [NumCodes]string{
	CapMissing:          "cap_missing",
	Granted:             "granted",
	PathNotPermitted:    "path_not_permitted",
	HostNotPermitted:    "host_not_permitted",
	HTTPNotPermitted:    "http_not_permitted",
	MethodNotPermitted:  "method_not_permitted",
	AddressNotPermitted: "address_not_permitted",
	DomainNotPermitted:  "domain_not_permitted",
	SecretNotPermitted:  "secret_not_permitted",
	SecretUnknown:       "secret_unknown",
	ProgramNotPermitted: "program_not_permitted",
	ModelNotPermitted:   "model_not_permitted",
	ServerNotPermitted:  "server_not_permitted",
	AgentNotPermitted:   "agent_not_permitted",
	NotInBase:           "not_in_base",
	NotConfirmed:        "not_confirmed",
	LeaseExpired:        "lease_expired",
	ServerChanged:       "server_changed",
	RouteNotPermitted:   "route_not_permitted",
	ServerNameMismatch:  "server_name_mismatch",
	InvalidRequest:      "invalid_request",
	Unavailable:         "unavailable",
	AuditUnavailable:    "audit_unavailable",
	RateLimited:         "rate_limited",
	BudgetExhausted:     "budget_exhausted",
	UntrustedContext:    "untrusted_context",
	DelegateFloor:       "delegate_floor",
	CapsEmpty:           "caps_empty",
	ToolHidden:          "tool_hidden",
}

// String is the reason as records spell it, such as "path_not_permitted".
func (c Code) String() string {
	if c >= NumCodes {
		return "unknown"
	}
	return codes[c]
}

// MarshalText makes a Code its word in JSON.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the word of a Code. A word of a later version is "unknown":
// a report is read all the same.
func (c *Code) UnmarshalText(word []byte) error {
	for *c = 0; *c < NumCodes && codes[*c] != string(word); {
		*c++
	}
	return nil
}
