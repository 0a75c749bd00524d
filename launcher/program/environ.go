package program

import "strings"

// searched are the folders in which programs look for others.
const searched = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// variables are the whole environment of a program: where programs are, its home,
// which language and terminal the operator has, and what it was granted.
func variables(home string, operators func(name string) (string, bool), granted []string) []string {
	env := []string{"PATH=" + searched, "HOME=" + home, "LANG=C.UTF-8", "TERM=dumb"}
	for i, kv := range env[2:] {
		name, _, _ := strings.Cut(kv, "=")
		if value, set := operators(name); set {
			env[2+i] = name + "=" + value
		}
	}
	for _, kv := range granted {
		name, value, _ := strings.Cut(kv, "=")
		env = WithVariable(env, name, value)
	}
	return env
}

// WithVariable is env with one variable as it is given, whatever it was before.
func WithVariable(env []string, name, value string) []string {
	var list []string
	for _, kv := range env {
		if !strings.HasPrefix(kv, name+"=") {
			list = append(list, kv)
		}
	}
	return append(list, name+"="+value)
}
