// Package gate is the one place that decides: every host call, WASI included,
// passes [Gate.Admit], which checks, records, and only then hands out a [Permit].
package gate
