{{/* What is made is called as istiod's is: Services, accounts and labels stay those that proxies and tools know. */}}
{{- define "coxswain.name" -}}
istiod{{ with .Values.revision }}-{{ . }}{{ end }}
{{- end -}}

{{- define "coxswain.clusterrole" -}}
istiod-clusterrole{{ with .Values.revision }}-{{ . }}{{ end }}-{{ .Release.Namespace }}
{{- end -}}

{{/* What names of a revision's webhooks and of its injector's ConfigMap end with. */}}
{{- define "coxswain.suffix" -}}
{{ with .Values.revision }}{{ if ne . "default" }}-{{ . }}{{ end }}{{ end }}
{{- end -}}

{{/* The ConfigMap with settings and plugins, which istiod's chart does not have. */}}
{{- define "coxswain.own" -}}
coxswain{{ with .Values.revision }}-{{ . }}{{ end }}
{{- end -}}

{{- define "coxswain.labels" -}}
app: istiod
istio.io/rev: {{ .Values.revision | default "default" | quote }}
operator.istio.io/component: Pilot
install.operator.istio.io/owning-resource: {{ .Values.ownerName | default "unknown" }}
istio: pilot
release: {{ .Release.Name }}
app.kubernetes.io/name: istiod
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: istio
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{/* Labels by which pods are found. They are istiod's, whose Deployment a release may have had before: they can't be changed. */}}
{{- define "coxswain.selector" -}}
{{- if .Values.revision -}}
app: istiod
istio.io/rev: {{ .Values.revision | quote }}
{{- else -}}
istio: pilot
{{- end -}}
{{- end -}}

{{- define "coxswain.image" -}}
{{- $hub := .Values.hub | default .Values.global.hub -}}
{{- if contains "/" .Values.image -}}
{{ .Values.image }}
{{- else if and $hub (not (regexMatch "^((docker\\.io/)?istio|gcr\\.io/istio-(release|testing)|registry\\.istio\\.io/.+)$" $hub)) -}}
{{ $hub }}/{{ .Values.image }}:{{ .Values.tag | default .Values.global.tag | default .Chart.AppVersion }}
{{- else -}}
{{- fail "no image is published: push the one that `make image` makes to a registry of yours, and name that in global.hub, or the whole image in image" -}}
{{- end -}}
{{- end -}}

{{/* The level of istiod's default:LEVEL. */}}
{{- define "coxswain.level" -}}
{{- $level := .Values.global.logging.level | default "default:info" -}}
{{- if not (regexMatch "^(default:|all:)?(debug|info|warn|error|none|fatal)$" $level) -}}
{{- fail (printf "global.logging.level is %q: only default:debug, info, warn and error are known; levels of parts are set while it runs, by coxswain log set" $level) -}}
{{- end -}}
{{- regexReplaceAll "none|fatal" (regexReplaceAll "^.*:" $level "") "error" -}}
{{- end -}}

{{/* Which of istiod's values mean nothing here: it fails with all that are found, but for those that are istiod's defaults. */}}
{{- define "coxswain.refuse" -}}
{{- $refused := list -}}
{{- range $path, $hint := .refused -}}
  {{- range $root := list "" "pilot." -}}
    {{- $is := include "coxswain.at" (dict "of" $.Values "path" (print $root $path)) | fromJson -}}
    {{- $usual := include "coxswain.at" (dict "of" $.usual "path" $path) | fromJson -}}
    {{- range $n, $at := include "coxswain.differs" (dict "is" $is.value "usual" $usual.value "path" (print $root $path)) | trim | splitList "\n" | compact -}}
      {{- if eq $path "_internal_defaults_do_not_set" -}}
        {{- $refused = append $refused (printf "%s: %s" $at $hint) -}}
      {{- else if eq $n 0 -}}
        {{- $refused = append $refused (printf "%s%s is a value of istiod's chart that means nothing here: %s" $root $path $hint) -}}
      {{- end -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- with $refused -}}
{{- fail (join "\n" .) -}}
{{- end -}}
{{- end -}}

{{/* {"value": what `of` has at `path`}, or {}. */}}
{{- define "coxswain.at" -}}
{{- $at := .of -}}
{{- $found := true -}}
{{- range $key := splitList "." .path -}}
  {{- if and $found (kindIs "map" $at) (hasKey $at $key) -}}
    {{- $at = index $at $key -}}
  {{- else -}}
    {{- $found = false -}}
  {{- end -}}
{{- end -}}
{{- if $found -}}{{- dict "value" $at | toJson -}}{{- else -}}{}{{- end -}}
{{- end -}}

{{/* The places, a line each, below `path` where `is` is not as it is usual; what has no usual value is not to be empty. */}}
{{- define "coxswain.differs" -}}
{{- $path := .path -}}
{{- $usual := .usual -}}
{{- if kindIs "map" .is -}}
  {{- range $key, $value := .is -}}
    {{- $of := ternary $usual dict (kindIs "map" $usual) -}}
    {{- include "coxswain.differs" (dict "is" $value "usual" (index $of $key) "path" (print $path "." $key)) -}}
  {{- end -}}
{{- else if and .is (kindIs "invalid" $usual) }}
{{ $path }}
{{- else if and (not (kindIs "invalid" .is)) (not (kindIs "invalid" $usual)) (ne (toJson .is | trimAll "\"") (toJson $usual | trimAll "\"")) }}
{{ $path }}
{{- end -}}
{{- end -}}

{{/* Takes away what is null: Helm leaves that where the chart itself has no such value. */}}
{{- define "coxswain.prune" -}}
{{- range $key, $value := . -}}
  {{- if kindIs "invalid" $value -}}
    {{- $_ := unset $ $key -}}
  {{- else if kindIs "map" $value -}}
    {{- include "coxswain.prune" $value -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* Gives `to` what `usual` has and it lacks, but for the maps whose parts are taken away by null. */}}
{{- define "coxswain.fill" -}}
{{- $to := .to -}}
{{- range $key, $value := .usual -}}
  {{- if kindIs "invalid" $value -}}
  {{- else if not (hasKey $to $key) -}}
    {{- if has $key (list "resources" "cpu" "memory" "seccompProfile") -}}{{- $value = dict -}}{{- end -}}
    {{- $_ := set $to $key (deepCopy $value) -}}
  {{- else if and (kindIs "map" $value) (not (has $key (list "resources" "cpu" "memory" "seccompProfile"))) -}}
    {{- include "coxswain.fill" (dict "to" (index $to $key) "usual" $value) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* Rules of a role in a file of deploy/kubernetes: (dict "root" $ "file" FILE "kind" KIND "names" what names there are
called here, each by RESOURCE/NAME, a list; "only" resources, of which a rule has one first). */}}
{{- define "coxswain.rules" -}}
{{- $kind := .kind -}}
{{- $names := .names | default dict -}}
{{- $only := .only -}}
{{- range $text := regexSplit "(?m)^---$" (.root.Files.Get .file) -1 -}}
  {{- $role := fromYaml $text -}}
  {{- if eq ($role.kind | default "") $kind -}}
    {{- range $rule := $role.rules }}
      {{- $rule = deepCopy $rule -}}
      {{- if or (not $only) (has (first $rule.resources) $only) -}}
      {{- if $rule.resourceNames -}}
        {{- $called := list -}}
        {{- range $rule.resourceNames -}}
          {{- $called = concat $called (index $names (print (first $rule.resources) "/" .) | default (list .)) -}}
        {{- end -}}
        {{- $rule = set $rule "resourceNames" $called -}}
      {{- end -}}
      {{- if and $.signers (eq (toJson $rule.resources) "[\"signers\"]") -}}
        {{- $rule = set $rule "resourceNames" $.signers -}}
      {{- end }}
- {{ toYaml $rule | nindent 2 | trim }}
      {{- end }}
    {{- end }}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* The configurations of webhooks in a file, which `coxswain webhooks` writes: (dict "root" $ "file" FILE "tag" TAG, empty:
the revision's own). Roots, policies and selectors that a control plane or a tag has written since stay. */}}
{{- define "coxswain.webhooks" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $text := $root.Files.Get .file | replace "release-namespace" $root.Release.Namespace | replace "release-service" (include "coxswain.name" $root) | replace "release-account" (include "coxswain.name" $root) -}}
{{- $text = $text | replace "release-revision" ($values.revision | default "default") | replace "release-tag" .tag -}}
{{- $istiods := lookup "admissionregistration.k8s.io/v1" "MutatingWebhookConfiguration" "" (print "istio-sidecar-injector" (include "coxswain.suffix" $root)) -}}
{{- range $document := regexSplit "(?m)^---$" $text -1 -}}
{{- $o := fromYaml $document -}}
{{- if or (eq $o.kind "MutatingWebhookConfiguration") $values.global.configValidation }}
{{- $is := lookup $o.apiVersion $o.kind "" $o.metadata.name -}}
{{- $note := index ($is.metadata | default dict | dig "annotations" dict | default dict) "coxswain.io/selectors" -}}
{{- $labels := merge (dict) $o.metadata.labels (include "coxswain.labels" $root | fromYaml) -}}
{{- $labels = set $labels "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- $notes := deepCopy $o.metadata.annotations -}}
{{- if eq $o.kind "MutatingWebhookConfiguration" -}}{{- $notes = merge $notes $values.sidecarInjectorWebhookAnnotations -}}{{- end -}}
{{- with $note -}}{{- $notes = set $notes "coxswain.io/selectors" . -}}{{- end -}}
{{- $hooks := list -}}
{{- range $hook := $o.webhooks -}}
  {{- if or (not (hasPrefix "auto." $hook.name)) $values.sidecarInjectorWebhook.enableNamespacesByDefault -}}
    {{- if hasKey $hook "reinvocationPolicy" -}}{{- $hook = set $hook "reinvocationPolicy" $values.sidecarInjectorWebhook.reinvocationPolicy -}}{{- end -}}
    {{- $bundle := "" -}}
    {{- with $istiods.webhooks -}}{{- $bundle = (first .).clientConfig.caBundle | default "" -}}{{- end -}}
    {{- range $was := $is.webhooks -}}
      {{- if eq $was.name $hook.name -}}
        {{- $bundle = $was.clientConfig.caBundle | default $bundle -}}
        {{- $hook = set $hook "failurePolicy" ($was.failurePolicy | default $hook.failurePolicy) -}}
        {{- if $note -}}{{- $hook = set (set $hook "namespaceSelector" $was.namespaceSelector) "objectSelector" $was.objectSelector -}}{{- end -}}
      {{- end -}}
    {{- end -}}
    {{- with $bundle -}}{{- $_ := set $hook.clientConfig "caBundle" . -}}{{- end -}}
    {{- $hooks = append $hooks $hook -}}
  {{- end -}}
{{- end }}
---
apiVersion: {{ $o.apiVersion }}
kind: {{ $o.kind }}
metadata:
  name: {{ $o.metadata.name }}
  labels: {{- toYaml $labels | nindent 4 }}
  annotations: {{- toYaml $notes | nindent 4 }}
webhooks: {{- toYaml $hooks | nindent 2 }}
{{- end }}
{{- end -}}
{{- end -}}

{{- /* The port at which DNS queries are answered (coxswain.settings.dnsAddr); empty: they are not. */}}
{{- define "coxswain.dnsPort" -}}
{{- with .Values.coxswain.settings.dnsAddr }}{{ regexFind "[0-9]+$" . }}{{ end }}
{{- end }}
