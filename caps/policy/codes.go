package policy

// A Code names a kind of finding. Codes are stable: scripts match them.
type Code string

// The codes, in the order of the table below, which says what each means.
const (
	CodeSyntax         Code = "syntax"
	CodeFile           Code = "file"
	CodeUnknownKey     Code = "unknown_key"
	CodeMisplacedKey   Code = "misplaced_key"
	CodeWrongType      Code = "wrong_type"
	CodeMissing        Code = "missing"
	CodeBadSchema      Code = "bad_schema"
	CodeNeedsSchema02  Code = "needs_schema_0_2"
	CodeNotEnforced    Code = "not_enforced"
	CodeBadPath        Code = "bad_path"
	CodeBadHost        Code = "bad_host"
	CodeBadMethod      Code = "bad_method"
	CodeBadDomain      Code = "bad_domain"
	CodeBadSecretID    Code = "bad_secret_id"
	CodeBadName        Code = "bad_name"
	CodeBadProgram     Code = "bad_program"
	CodeBadCapability  Code = "bad_capability"
	CodeBadLimit       Code = "bad_limit"
	CodeTwoSpellings   Code = "two_spellings"
	CodeBadTemplate    Code = "bad_template"
	CodeBadParam       Code = "bad_param"
	CodeParamUndecl    Code = "param_undeclared"
	CodeParamUnset     Code = "param_unset"
	CodePathDotDot     Code = "path_dotdot"
	CodePathIsFile     Code = "path_is_file"
	CodePathMissing    Code = "path_missing"
	CodePathLink       Code = "path_link"
	CodePathRoot       Code = "path_root"
	CodeHiddenChars    Code = "hidden_characters"
	CodeWildcardScope  Code = "wildcard_scope"
	CodeAllowHTTP      Code = "allow_http"
	CodeTCP            Code = "tcp"
	CodeNoHosts        Code = "no_hosts"
	CodeKBWriteAll     Code = "kb_write_all"
	CodeRawAlone       Code = "raw_without_domain"
	CodeRawRevoked     Code = "raw_revoked"
	CodeExecAny        Code = "exec_any"
	CodeExecOrders     Code = "exec_orders"
	CodeDuplicate      Code = "duplicate_entry"
	CodeFSReadOnly     Code = "fs_read_only"
	CodeCapsExtra      Code = "caps_extra"
	CodeBadTier        Code = "bad_tier"
	CodeBadEffect      Code = "bad_effect"
	CodeBadConstraint  Code = "bad_constraint"
	CodeBadLease       Code = "bad_lease"
	CodeUnknownTool    Code = "unknown_tool"
	CodeRouteClosed    Code = "route_closed"
	CodeRouteUnbound   Code = "route_unbound"
	CodeRouteUntrusted Code = "route_untrusted"
	CodeRouteTwice     Code = "route_twice"

	CodeTrustedElsewhere Code = "trusted_elsewhere"

	CodeNoRestriction   Code = "no_restriction"
	CodeFloorKept       Code = "floor_kept"
	CodeUnknownCategory Code = "unknown_category"
	CodeUnknownAdapter  Code = "unknown_adapter"
)

// A CodeInfo is a row of the table of codes.
type CodeInfo struct {
	Code     Code
	Severity Severity
	Meaning  string
}

// Codes returns every code with its severity and meaning.
func Codes() []CodeInfo {
	return []CodeInfo{
		{CodeSyntax, SeverityError, "the document is not the TOML that is read here"},
		{CodeFile, SeverityError, "the file cannot be read, or is not a regular file that only the operator may write"},
		{CodeUnknownKey, SeverityError, "a key that has no meaning in this place"},
		{CodeMisplacedKey, SeverityError, "a key that belongs into another table or another document"},
		{CodeWrongType, SeverityError, "a value of a type that the key does not take"},
		{CodeMissing, SeverityError, "a key that must be there is not"},
		{CodeBadSchema, SeverityError, "a schema other than 0.1 and 0.2"},
		{CodeNeedsSchema02, SeverityError, `a form that schema = "0.2" switches on`},
		{CodeNotEnforced, SeverityError, "a restriction that this version does not enforce; it is refused, never ignored"},
		{CodeBadPath, SeverityError, "a path that is not absolute, holds a pattern, or cannot be one"},
		{CodeBadHost, SeverityError, "not a host name or address, with or without a port"},
		{CodeBadMethod, SeverityError, "not an HTTP method"},
		{CodeBadDomain, SeverityError, "not a domain of the knowledge base"},
		{CodeBadSecretID, SeverityError, "not of the form runloop/<scope>/<name>"},
		{CodeBadName, SeverityError, "not a name of the kind that the key takes"},
		{CodeBadProgram, SeverityError, "not the absolute path of a program"},
		{CodeBadCapability, SeverityError, "not a capability string domain:action:scope"},
		{CodeBadLimit, SeverityError, "not a limit: negative, no integer, or too large"},
		{CodeTwoSpellings, SeverityError, "one limit given twice under two names"},
		{CodeBadTemplate, SeverityError, "a template that is not there, cannot be read or is not one"},
		{CodeBadParam, SeverityError, "a placeholder, its declaration or its value is malformed"},
		{CodeParamUndecl, SeverityError, "a placeholder or value without a declaration in the manifest's [params]"},
		{CodeParamUnset, SeverityError, "a placeholder that nobody gave a value"},
		{CodePathDotDot, SeverityWarning, `a path with ".." in it; it refuses unless security.path_profile is "relaxed", which resolves it by its text`},
		{CodePathIsFile, SeverityWarning, "an existing file, not a folder: that one file is granted"},
		{CodePathMissing, SeverityWarning, "a path that does not exist on this machine"},
		{CodePathLink, SeverityWarning, `a path that a link leads elsewhere; it refuses unless security.path_profile is "relaxed"`},
		{CodePathRoot, SeverityWarning, "the whole file system"},
		{CodeHiddenChars, SeverityWarning, "characters that are invisible or turn the direction of text"},
		{CodeWildcardScope, SeverityWarning, "a scope that covers everything"},
		{CodeAllowHTTP, SeverityWarning, "connections that are not encrypted"},
		{CodeTCP, SeverityWarning, "bytes that nobody looks into"},
		{CodeNoHosts, SeverityWarning, "net without hosts grants nothing"},
		{CodeKBWriteAll, SeverityWarning, "kb_write = true is discouraged outside trusted agents"},
		{CodeRawAlone, SeverityWarning, "X_raw without X gives nothing"},
		{CodeRawRevoked, SeverityWarning, "kb_read = true in a layer takes X_raw away"},
		{CodeExecAny, SeverityWarning, "exec = true lets the agent start every program"},
		{CodeExecOrders, SeverityWarning, "programs that run or start what they are told to, such as a shell, env or git"},
		{CodeDuplicate, SeverityInfo, "an entry that is there already; it counts once"},
		{CodeFSReadOnly, SeverityInfo, "fs grants reading alone; writing needs fs_rw"},
		{CodeBadTier, SeverityError, "not a privilege tier"},
		{CodeBadEffect, SeverityError, "not an effect"},
		{CodeBadConstraint, SeverityError, "not a value that the constraint takes"},
		{CodeBadLease, SeverityError, "not an end in a time zone, or not a number of uses"},
		{CodeNoRestriction, SeverityError, "a profile that restricts nothing at all: something is missing in it"},
		{CodeFloorKept, SeverityWarning, "a file that was to replace a built-in floor cannot be used; the built-in one holds"},
		{CodeRouteClosed, SeverityWarning, "a route that the policy itself keeps closed, for want of net or secrets"},
		{CodeRouteUnbound, SeverityWarning, "a route whose secret may be sent to other hosts or given to programs"},
		{CodeRouteUntrusted, SeverityWarning, "a route to a host that is not among security.caps.trusted_hosts: its first answer closes it"},
		{CodeRouteTwice, SeverityError, "a second route of a host, path and method"},
		{CodeTrustedElsewhere, SeverityWarning, "security.caps.trusted_hosts names a host by a scheme or port that no grant reaches it by"},
		{CodeUnknownTool, SeverityWarning, "a tool that there is not: denying it takes nothing away, and allowing it does nothing"},
		{CodeUnknownCategory, SeverityWarning, "a category of tools that there is not; it shows nothing"},
		{CodeUnknownAdapter, SeverityWarning, "an adapter that there is not: forbidding it takes nothing away, and allowing it does nothing"},
		{CodeCapsExtra, SeverityWarning, "an entry of a layer that the base does not have; it is ignored"},
	}
}

// Severity returns the severity of a code; of one that is not in the table it
// is an error.
func (c Code) Severity() Severity {
	for _, info := range Codes() {
		if info.Code == c {
			return info.Severity
		}
	}
	return SeverityError
}
