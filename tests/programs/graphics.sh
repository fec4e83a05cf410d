commands="gs convert identify"
packages="ghostscript imagemagick"
version="echo ghostscript \$(gs --version), \$(convert --version | head -1 | cut -d' ' -f2-3)"
checks="PostScript to PNG, JPEG, fax and PDF and back; 20 operations on images with threads: pixels and files compared"
seconds=300
processes="gs convert.*"

postscript() {
    echo '%!PS-Adobe-3.0'
    awk 'BEGIN { for (p = 0; p < 12; p++) { for (i = 0; i < 400; i++) {
        printf "%.3f %.3f %.3f setrgbcolor newpath %d %d moveto %d %d %d %d %d %d curveto %s\n", i % 7 / 7, i % 11 / 11, i % 13 / 13,
            i * 7 % 600, i * 11 % 800, i * 13 % 600, i * 17 % 800, i * 19 % 600, i * 23 % 800, i * 29 % 600, i * 31 % 800, i % 2 ? "fill" : "stroke"
        if (i % 10 == 0) printf "/Times-Roman findfont %d scalefont setfont %d %d moveto (text %d) show\n", 8 + i % 30, i * 37 % 500, i * 41 % 700, i }
        print "<< /ShadingType 3 /ColorSpace /DeviceRGB /Coords [300 400 10 300 400 200] /Function << /FunctionType 2 /Domain [0 1] /C0 [1 0 0] /C1 [0 0 1] /N 1 >> >> shfill showpage" } }'
}
ghostscript() {
    local device
    postscript >a.ps
    for device in png16m pngmono jpeg pbmraw bmp16m faxg4; do
        gs -q -dSAFER -dBATCH -dNOPAUSE -dGraphicsAlphaBits=4 -dTextAlphaBits=4 -r100 "-sDEVICE=$device" "-sOutputFile=$device-%d" a.ps 2>&1 ||
            gs -q -dSAFER -dBATCH -dNOPAUSE -r100 "-sDEVICE=$device" "-sOutputFile=$device-%d" a.ps
    done
    gs -q -dSAFER -dBATCH -dNOPAUSE -sDEVICE=pdfwrite -sOutputFile=a.pdf a.ps
    gs -q -dSAFER -dBATCH -dNOPAUSE -r72 -dNumRenderingThreads=4 -dBandHeight=50 -dMaxBitmap=10000 -sDEVICE=ppmraw -sOutputFile=pdf-%d.ppm a.pdf
    gs -q -dSAFER -dBATCH -dNOPAUSE -sDEVICE=txtwrite -sOutputFile=a.txt a.pdf
    sums png* pbm* jpeg* bmp* fax* pdf-* a.txt
}
images() {
    export MAGICK_THREAD_LIMIT=4
    convert -seed 5 -size 700x500 plasma:fractal ppm:a.ppm
    convert -size 500x400 gradient:red-blue -swirl 180 ppm:b.ppm
    convert a.ppm -resize 1300x -unsharp 0x2 -rotate 17 -background none c.ppm
    convert a.ppm b.ppm -gravity center -compose multiply -composite d.ppm
    convert a.ppm \( +clone -blur 0x8 \) -compose difference -composite -normalize -posterize 6 e.ppm
    convert a.ppm -quantize Lab -colors 40 -dither FloydSteinberg f.gif
    convert a.ppm -morphology Dilate Disk:4 -canny 0x1+10%+30% -negate g.ppm
    convert a.ppm -distort Barrel '0.2 0 0 0.8' -sparse-color Voronoi '30,10 red 10,80 blue' h.ppm
    convert a.ppm -quality 80 i.jpg
    convert a.ppm b.ppm c.ppm -coalesce -layers optimize j.gif
    convert i.jpg f.gif -append -define png:exclude-chunks=date,time k.png
    convert k.png -crop 100x100 +repage -append l.ppm
    convert a.ppm -median 3 -modulate 110,80,50 -sepia-tone 70% -fft -delete 1 m.ppm
    sums ./*.ppm ./*.gif ./*.jpg
    identify -format '%m %w %h %# %k\n' ./*.ppm ./*.gif ./*.jpg k.png
}
program() {
    both ghostscript ghostscript
    both imagemagick images
}
