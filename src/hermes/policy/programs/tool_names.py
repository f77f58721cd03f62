"""The names of tools that work on a project, and of those that only tell about the machine."""

from __future__ import annotations

# Whatever their options, they read the project and write into it.
WORKERS = """
    parquet-tools avro-tools tinygo scala-cli regal bruno asyncapi gqlgen xenon tach voila panel
    gradio chainlit bokeh dependency-cruiser jscodeshift rome purgecss critters-cli sharp ladle
    histoire vuepress vitepress api-extractor jsdoc esdoc docsify hexo pelican nikola clj-kondo
    cljfmt stylish-haskell fantomas selene styler verible-verilog-lint verible-verilog-format svlint
    vsg iwyu_tool flawfinder rats cpplint django-admin dagster sips cookstyle pgformatter roc
    backstop bloop treefmt zizmor prek pyrefly dtc h5ls h5dump ncdump detex srec_info srec_cat spell
    apkanalyzer nuxi react-native qemu-system-arm qemu-system-riscv64 tflocal md2pdf
    htmlproofer cfssl commitlint conform git-cliff hck lizard wily lychee linkchecker dockle squawk
    pytest py.test unittest ruff black isort flake8 mypy pyright pylint bandit tox nox coverage
    autopep8 yapf pyflakes pycodestyle pydocstyle vulture radon sphinx-build sphinx-apidoc mkdocs
    pre-commit cython nuitka pyinstaller pip-compile pip-sync pip-audit safety nbconvert jupytext
    papermill uvicorn gunicorn hypercorn flask celery streamlit locust behave robot scalene pdoc
    towncrier bumpversion bump2version commitizen cz interrogate codespell djlint jest mocha vitest
    ava tap karma cypress playwright tsc eslint prettier stylelint webpack rollup vite esbuild
    parcel swc babel next nuxt astro gatsby remix ng vue-cli-service svelte-kit turbo nx lerna rush
    tsup tsd typedoc storybook wireit xo standard biome oxlint knip depcheck nodemon concurrently
    npm-run-all run-s run-p rimraf mkdirp cross-env husky lint-staged c8 nyc jscpd madge
    license-checker serve http-server live-server json-server changeset size-limit cmake ctest cpack
    ninja meson gcc g++ cc c++ clang clang++ ld ar ranlib as nasm yasm strip objcopy clang-format
    clang-tidy cppcheck include-what-you-use astyle uncrustify indent autoconf automake autoreconf
    aclocal libtoolize autoheader pkg-config gcov lcov gcovr genhtml bison flex yacc lex swig
    doxygen scons waf xmake premake5 tup bazel bazelisk buck buck2 pants please ctags etags cscope
    gprof ccmake tcc avr-gcc arm-none-eabi-gcc emcc wasm-pack wat2wasm wasm2wat wasmtime wasmer
    rustc rustfmt rustdoc clippy-driver cargo-clippy cbindgen bindgen trunk mdbook gofmt goimports
    golangci-lint golint staticcheck gopls revive mockgen stringer wire gotestsum gosec govulncheck
    dlv templ air sqlc javac java javadoc jar kotlinc kotlin scalac ant checkstyle pmd spotbugs
    ktlint detekt mvn mvnw gradle gradlew sbt lein boot mill jshell native-image dotnet msbuild
    nuget csc fsc swift swiftc swiftlint swiftformat xcodebuild xcrun xcodegen flutter dart ghc
    runghc runhaskell stack cabal hlint ormolu fourmolu ocamlfind ocamlc ocamlopt dune rebar3 mix
    erlc elixirc gleam shards nimble v zig odin fpc ldc2 dmd dub gfortran ifort gnatmake coqc agda
    idris lean lake rspec rubocop rake standardrb erb sorbet srb steep brakeman reek jekyll
    middleman guard puma phpunit phpstan psalm php-cs-fixer phpcs phpcbf pest pint rector artisan
    make gmake bmake just task mage invoke inv doit redo ninja-build earthly dagger protoc buf
    grpcurl thrift flatc capnp openapi-generator swagger-codegen graphql-codegen shellcheck shfmt
    hadolint actionlint yamllint markdownlint markdownlint-cli2 mdl vale proselint ansible-lint
    tflint checkov tfsec terraform-docs kubeval kubeconform kustomize sqlfluff tree-sitter semgrep
    ast-grep comby dprint taplo jsonlint ajv xmlstarlet tidy csslint sass lessc postcss tailwindcss
    svgo uglifyjs terser html-minifier pandoc dot neato circo fdp twopi plantuml mmdc latexmk
    pdflatex xelatex lualatex tectonic bibtex biber asciidoctor groff troff mandoc typst quarto
    ffmpeg ffprobe sox convert magick identify mogrify montage composite gs pdftk qpdf pdftotext
    pdfinfo pdftoppm exiftool optipng pngquant jpegoptim cwebp inkscape rsvg-convert tesseract
    ogrinfo ogr2ogr gdalinfo gdal_translate jupyter jupyter-nbconvert dvc mlflow tensorboard kedro
    dbt great_expectations luigi nvcc accelerate torchrun deepspeed mlr csvsort csvjson csvsql
    in2csv xsv qsv jo gron fx dasel yq jq jless visidata vd q miller htmlq pup tokei cloc scc loc
    sloccount hexyl diffoscope difft delta bc dc units msgfmt msgmerge xgettext gettext envsubst m4
    cpp numfmt chafa figlet cowsay lolcat banner fortune sl pv progress tput clear reset column bats
    shellspec hugo zola eleventy prove trivy grype syft gitleaks trufflehog osv-scanner licensecheck
    hurl mockery maturin setuptools-scm pipdeptree pip-licenses import-linter lint-imports
    bundlesize ncu imagemin scalafix credo elvis pkgconf opusenc d2 pa11y nilaway virtualenv ghcid
    choose sd datamash vvp iverilog verilator yosys ghdl godot love busted lighthouse symfony
    spark-submit sonar-scanner snyk-to-html ansible-inventory ansible-doc dive lefthook watchman
    kube-score kubescape pluto popeye polaris kubesec kube-linter helm-docs west idf.py pio
    platformio arduino-cli snakemake nextflow cwltool cromwell metaflow autoflake pyupgrade
    docformatter refurb deptry pydeps py-spy memray viztracer kernprof austin pyre pytype
    basedpyright ty djhtml curlylint sqlfmt sqlcheck pg_format oxfmt publint attw syncpack manypkg
    taze npm-check rspack rsbuild elm elm-test elm-format purs spago ameba fennel ecl clisp gforth
    maxima gp sage gap scilab dialyzer gofumpt golines gotests go-mod-outdated errcheck ineffassign
    gocyclo gomodifytags richgo protolint cargo-nextest cargo-deny cross bacon cargo-audit
    flamegraph inferno samply callgrind_annotate ms_print cg_annotate uftrace git-cliff gitlint
    detect-secrets hck jnv jql jc yj xan daff gm vips
    vipsthumbnail oxipng pngcrush jpegtran cjpeg djpeg gifsicle gif2webp avifenc cavif heif-convert
    potrace autotrace libreoffice soffice unoconv wkhtmltopdf weasyprint prince pdfcrop pdfunite
    pdfseparate pdfimages pdffonts mutool ocrmypdf img2pdf pdfgrep ebook-convert aspell hunspell
    languagetool write-good alex textlint mediainfo mkvmerge mkvinfo HandBrakeCLI soxi lame flac
    vorbiscomment whisper piper espeak exiv2 jhead qrencode zbarimg asciinema vhs agg terminalizer
    docusaurus antora sqlite-utils datasette pgbadger terrascan infracost conftest opa regula
    molecule promtool amtool k6 artillery newman dredd schemathesis spectral redocly
    openapi-generator-cli swagger-cli rover melos xcpretty xcbeautify swiftgen tuist aapt apksigner
    zipalign bundletool openscad kicad-cli nextpnr-ice40 icepack gtkwave ngspice avr-objcopy
    samtools bcftools bedtools bwa bowtie2 minimap2 fastqc multiqc fastp blastn blastp makeblastdb
    seqkit seqtk kallisto salmon hisat2 gatk picard vcftools plink muscle mafft iqtree gdalwarp
    tippecanoe mapshaper osmium pdal gmx chktex lacheck latexindent texcount dvipdf hoogle
    ocamlformat utop csharpier perltidy perlcritic luacheck stylua sassc stylus pug-lint
    htmlhint html-validate axe wasm-opt wasm-objdump wasm-tools wit-bindgen fasm lld llvm-objdump
    llvm-profdata llvm-cov llvm-nm opt llc bloaty pahole abidiff lddtree gtags buildifier buildozer
    gazelle nixfmt alejandra statix deadnix nix-tree nix-diff nvd llama-cli psrecord gomplate jinja2
    j2 mustache dotenv-linter cspell typos misspell licensee reuse addlicense scancode
    bump-my-version standard-version git-chglog auto-changelog conventional-changelog
    gitlab-ci-local glow mdcat slides presenterm marp scrapy esno jiti forge anvil hardhat truffle
    slither solc vyper circom snarkjs z3 cvc5 minisat idris2 tlc apalache frama-c cbmc swag sysbench
    sqlmesh caddy pgbench wasm-bindgen wasm-strip sphinx-autobuild sphinx-quickstart
    act nbstripout nbqa nbdime nbdiff pylama mutmut cosmic-ray jupyter-book manim flynt
    ssort add-trailing-comma mprof pympler fil-profile nosetests nose2 trial green ward slipcover
    stubgen stubtest monkeytype react-scripts craco vue quasar ember blitz redwood rw sv
    svelte-package webpack-cli tsdx microbundle unbuild pkgroll tsc-alias ttsc patch-package plop
    hygen yeoman license-check-and-add source-map-explorer webpack-bundle-analyzer import-cost
    why-is-node-running clinic 0x autocannon gotext goda godepgraph gocov gocov-html go-junit-report
    go-licenses deadcode nancy asn1c ragel re2c gperf lemon peg antlr antlr4 cmake-format cmake-lint
    gersemi jdeps jlink jpackage javap jarsigner groovy groovysh kotlin-language-server scalafmt
    google-java-format dot2tex xdot gnuplot graph-easy mscgen ditaa pikchr rrdtool
"""
# They change nothing, and no content of files comes out.
READERS = """
    dstat
    pg_lsclusters say where findstr tasklist systeminfo driverquery getmac ver mdfind mdls
    lvs vgs pvs lvdisplay vgdisplay pvdisplay lvscan vgscan pvscan dumpe2fs
    [ test expr cal ncal df du file free getconf groups id last lastlog lsb_release lsblk lscpu
    lsmem lsmod lspci lsusb lsns lslocks lsipc printenv ps pgrep pidof pstree stat tree type uptime
    users vmstat iostat mpstat sar w whereis who whatis apropos help locate mlocate plocate ldd nm
    objdump readelf size addr2line c++filt otool dwarfdump strings ss netstat lsof ulimit locale
    pg_isready arp getent sleep yes top htop btop atop iotop glances nvidia-smi sensors upower acpi
    inxi neofetch fastfetch screenfetch sw_vers system_profiler vm_stat dircolors cksum sum factor
    shuf logname pathchk printf true false jps jstack jmap jinfo jstat jcmd pmap slabtop blkid
    findmnt mountpoint namei getfacl lsattr getfattr getcap ipcs lsinitramfs modinfo ntpq chronyc
    numastat tty stty infocmp tabs ncdu dust duf procs bandwhich apt-cache dpkg-query debsums info
    tldr cheat perldoc pydoc ri godoc zdump md5 shasum sha3sum xxhsum b3sum rhash crc32 sha1 sha256
    ent zipinfo zipgrep lzless xzless bzless bzmore zmore zdiff zcmp lsar uuid dmidecode lshw hwinfo
    xrandr xdpyinfo ipcalc sipcalc atq nvtop rocm-smi intel_gpu_top glxinfo vulkaninfo clinfo lstopo
    hwloc-ls cpuid nethogs nload bmon vnstat btm gtop dua gdu viddy errno isutf8
    md5deep hashdeep squeue sinfo sacct qstat bjobs tz bat batcat inotifywait inotifywatch lsd exa
    eza aa-status sestatus getenforce lslogins lspcmcia lsscsi lsdasd lsappinfo nproc arch hostid
    klist xlsclients xlsfonts xprop xwininfo fc-list fc-match lpstat lpq systemd-analyze
    systemd-cgls systemd-cgtop systemd-detect-virt systemd-delta ausearch aureport lastb utmpdump
    tload smem ps_mem turbostat rpcinfo showmount nfsstat zramctl filefrag biosdecode kstat prtstat
    peekfd pwdx uname nstat
"""
