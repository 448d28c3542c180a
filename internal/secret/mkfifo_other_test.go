//go:build !linux

package secret

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }
