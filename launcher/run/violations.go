package run

import (
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/launcher/places"
)

// A Violation is one reason why the policy refuses a launch. All of them are
// found before anything is started, not the first alone.
type Violation struct {
	Code       caps.Code `json:"code"`
	Message    string    `json:"message"`
	Capability string    `json:"capability"`
	Layer      string    `json:"layer"`

	text places.Text // the message
}

// violation is one whose message is text.
func violation(code caps.Code, text places.Text, capability, layer string) Violation {
	return Violation{code, text.String(), capability, layer, text}
}

// violations are all that the plan itself refuses a launch for.
func violations(spec *Spec, plan Plan) []Violation {
	var list []Violation
	if plan.Effective.IsEmpty() && spec.FailOnEmpty {
		list = append(list, emptied(plan)...)
	}
	list = append(list, starved(spec, plan)...)
	if !spec.Relaxed {
		for _, r := range spec.Paths.Redirected() {
			list = append(list, violation(caps.Unavailable, r.text(), "", r.Layer))
		}
		for _, scope := range left(plan, caps.FS) {
			if pos, missing := spec.Paths.Missing[scope]; missing {
				list = append(list, violation(caps.Unavailable,
					places.Textf("%s%s", spec.Paths.absence(), described(places.Path(scope), pos)),
					wordsAt(plan, caps.FS, scope), "base"))
			}
		}
	}
	if spec.ExecRefused != "" {
		for _, scope := range left(plan, caps.Exec) {
			list = append(list, violation(caps.Unavailable, places.Host(spec.ExecRefused),
				wordsAt(plan, caps.Exec, scope), "base"))
		}
	}
	return list
}

// emptied says what took each capability away, where nothing is left.
func emptied(plan Plan) []Violation {
	var list []Violation
	for _, c := range plan.Changes {
		if c.Kind != caps.Revoked {
			continue
		}
		for _, capability := range c.Grant.Strings() {
			list = append(list, violation(caps.CapsEmpty, places.Textf("%s was taken away by %s, and nothing is left",
				places.Capability(capability), described(places.Layer(c.Layer), c.Source)), capability, c.Layer))
		}
	}
	if list == nil {
		list = []Violation{violation(caps.CapsEmpty, places.Textf(emptyMessage), "", "base")}
	}
	return list
}

// wordsAt is what is left of a scope, as a capability.
func wordsAt(plan Plan, f caps.Family, scope string) string {
	grants := plan.Effective.Grants()
	if i := slices.IndexFunc(grants, func(g caps.Grant) bool { return g.Family == f && g.Scope == scope }); i >= 0 {
		return grants[i].String()
	}
	return ""
}

// messages are what the record of a refusal holds.
func messages(list []Violation) []string {
	var out []string
	for _, v := range list {
		out = append(out, v.Message)
	}
	return out
}

// refusal is what the plan itself refuses, and why; OK: nothing.
func refusal(spec *Spec, plan Plan) (Outcome, int, places.Text) {
	if plan.Effective.IsEmpty() && spec.FailOnEmpty {
		return Refused, StatusPolicy, places.Textf(emptyMessage)
	}
	if !spec.Relaxed {
		if why := spec.Paths.refusal(plan); why.String() != "" {
			return Refused, StatusPolicy, why
		}
	}
	if list := starved(spec, plan); len(list) > 0 {
		return Refused, StatusPolicy, places.Textf(
			"blocked: policy removed a capability that the agent requires (reason 1 of %d): %s",
			len(list), list[0].text)
	}
	if spec.Unfit != "" {
		return Unsupported, StatusUnsupported, places.Host(spec.Unfit)
	}
	if spec.ExecRefused != "" && holds(plan.Effective, caps.Exec) {
		return Unsupported, StatusUnsupported, places.Host(spec.ExecRefused)
	}
	return OK, 0, places.Text{}
}

const emptyMessage = "no capability is left, and security.caps.fail_on_empty is set"
