//go:build netbsd || openbsd || dragonfly

package underlay

const ctlTOS4 = -1

var (
	tellTOS4      []boolOption
	dontFragment4 dontFragment
)
