package lane

// OrDefault are the bounds with those that hold where the operator asked for none.
func (b Bounds) OrDefault() Bounds {
	if b.Memory == 0 {
		b.Memory = MaxData
	}
	if b.Pids == 0 {
		b.Pids = MaxProcesses
	}
	return b
}

// ownThreads are those of a confined rlp, and more.
const ownThreads = 16
