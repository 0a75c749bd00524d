//go:build !slim

package early

// Asked is the launch that a resident helper is asked for; nil where nobody is.
// The whole program has no hurry.
func Asked(args, env []string) *Pending { return Ask(args, env) }
