package lane

// orDefault is b with what nobody asked for.
func (b Bounds) orDefault() Bounds {
	if b.Memory == 0 {
		b.Memory = MaxData
	}
	if b.Pids == 0 {
		b.Pids = MaxProcesses
	}
	return b
}
