# Words for vxsctl, from vxsctl itself.
function __vxsctl_words
	set -l words (commandline -opc)
	set -l last (commandline -ct)
	set -l list (vxsctl complete -- $words[2..] "$last" 2>/dev/null)
	if test $status -eq 3
		__fish_complete_path "$last"
	else if set -q list[1]
		printf '%s\n' $list
	end
end
complete -c vxsctl -f -a '(__vxsctl_words)'
