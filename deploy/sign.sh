#!/bin/sh
# Signs with the key that COSIGN_KEY names (a file, or what cosign takes instead), whose password is in COSIGN_PASSWORD.
# Nothing is sent to a log of signatures: who has the public key needs no other's word.
#   deploy/sign.sh blob FILE BUNDLE                       a file
#   deploy/sign.sh provenance FILE BUNDLE TAG COMMIT      of what a file was made, and how (SLSA 1.0)
#   deploy/sign.sh image NAME@sha256:…                    an image, in its registry (COSIGN_FLAGS: further flags)
set -eu
alone='--tlog-upload=false --use-signing-config=false --yes'
: "${COSIGN_KEY:?names the key}"

case "${1:-}" in
blob)
	exec cosign sign-blob --key "$COSIGN_KEY" $alone --bundle "$3" "$2"
	;;
provenance)
	predicate=$(mktemp)
	trap 'rm -f "$predicate"' EXIT
	cat >"$predicate" <<-END
		{
		  "buildDefinition": {
		    "buildType": "https://github.com/coxswain-mesh/coxswain/blob/main/docs/install.md#how-a-release-is-made",
		    "externalParameters": {"tag": "$4", "config": ".goreleaser.yaml"},
		    "internalParameters": {"go": "$(go env GOVERSION)"},
		    "resolvedDependencies": [{"uri": "git+https://github.com/coxswain-mesh/coxswain@refs/tags/$4", "digest": {"gitCommit": "$5"}}]
		  },
		  "runDetails": {"builder": {"id": "https://github.com/coxswain-mesh/coxswain/blob/main/.goreleaser.yaml"}}
		}
	END
	cosign attest-blob --key "$COSIGN_KEY" $alone --predicate "$predicate" --type slsaprovenance1 --bundle "$3" "$2"
	;;
image)
	exec cosign sign --key "$COSIGN_KEY" $alone ${COSIGN_FLAGS:-} "$2"
	;;
*)
	echo "deploy/sign.sh blob FILE BUNDLE | provenance FILE BUNDLE TAG COMMIT | image NAME@sha256:…" >&2
	exit 2
	;;
esac
