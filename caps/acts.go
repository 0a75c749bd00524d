package caps

// Acts reports whether a request of family f in mode m leaves the machine or
// changes it, so that its record has to be on disk before it is done: it is not
// known to be one that only reads what lies here.
func Acts(f Family, m Mode) bool {
	if tier := MetadataOf(f).Tier; tier != Pure && tier != LocalState {
		return true
	}
	return EffectOf(f, m)&^(NoEffect|IORead|Meta) != 0
}
