// Package vswitch is the switch. Its folder is called switch, as the thing it
// holds; switch is a Go keyword, hence the package's name and the import
//
//	import vswitch "github.com/vxswitch/vxswitch/switch"
package vswitch
