#!/usr/bin/env bash
# pack-chart.sh HELM VERSION FOLDER: packs deploy/chart into FOLDER/coxswain-VERSION.tgz, with the definitions of Istio's
# kinds and the Gateway API's, of the modules that go.mod pins. Helm makes those that a cluster lacks, and leaves them at uninstall.
set -euo pipefail
helm=$1 version=${2#v} to=$3
cd "$(dirname "$0")/.."
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+ ]] || version=0.0.0-$version
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -rL deploy/chart "$work/coxswain"
mkdir "$work/coxswain/crds"
module() { go list -m -f '{{.Dir}}' "$1"; }
cp "$(module istio.io/api)/kubernetes/customresourcedefinitions.gen.yaml" "$work/coxswain/crds/istio.yaml"
for f in "$(module sigs.k8s.io/gateway-api)"/config/crd/standard/gateway.networking.k8s.io_*.yaml; do
	if grep -q '^kind: CustomResourceDefinition$' "$f"; then cp "$f" "$work/coxswain/crds/"; fi
done
cp LICENSE "$work/coxswain/"
chmod -R u+w "$work/coxswain"
mkdir -p "$to"
"$helm" package "$work/coxswain" --version "$version" --app-version "$version" --destination "$to" >/dev/null
echo "$to/coxswain-$version.tgz"
