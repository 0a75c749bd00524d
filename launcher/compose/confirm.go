package compose

import (
	"context"

	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/launcher/terminal"
)

// confirm answers for the operator as security.confirm says: by asking at the
// terminal of this process, or without.
func (a *Runner) confirm(c *Composition, agent string) hostcalls.Confirm {
	switch c.Config.Security.Confirm {
	case "allow":
		return func(context.Context, hostcalls.Question) (bool, string) { return true, `by security.confirm = "allow"` }
	case "ask":
		if c.Wrap != nil && c.Wrap.Ask != nil { // stdin and stdout are the client's
			return c.Wrap.Ask
		}
		if c.Origin.unattended() {
			return func(context.Context, hostcalls.Question) (bool, string) {
				return false, `nobody can be asked behind a service; the operator may write confirm = "allow" under [security]`
			}
		}
		return func(ctx context.Context, q hostcalls.Question) (bool, string) {
			return terminal.Ask(ctx, agent, q)
		}
	}
	return func(context.Context, hostcalls.Question) (bool, string) { return false, `security.confirm = "refuse"` }
}
