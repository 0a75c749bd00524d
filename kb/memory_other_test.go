//go:build !linux

package kb_test

import "errors"

func childIntake(string) error { return errors.ErrUnsupported }
