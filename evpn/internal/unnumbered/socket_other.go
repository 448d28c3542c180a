//go:build !linux

package unnumbered

import "errors"

func open(*Config) (socket, error) {
	return nil, errors.New("a peer with an interface in place of its address needs Linux")
}
