// Bench of vt019_sequence_detector: overlapping sequence detector.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_found;
    int errortime_found;
    int errors_hits;
    int errortime_hits;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       areset;
  logic       valid;
  logic       bit_in;
  wire        found_ref;
  wire        found_dut;
  wire  [3:0] hits_ref;
  wire  [3:0] hits_dut;

  RefModule good1 (
    .clk(clk),
    .areset(areset),
    .valid(valid),
    .bit_in(bit_in),
    .found(found_ref),
    .hits(hits_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .areset(areset),
    .valid(valid),
    .bit_in(bit_in),
    .found(found_dut),
    .hits(hits_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire        open_found = found_ref ^ found_ref;
  wire        match_found = (found_dut ^ open_found) === (found_ref ^ open_found);
  wire  [3:0] open_hits = hits_ref ^ hits_ref;
  wire        match_hits = (hits_dut ^ open_hits) === (hits_ref ^ open_hits);
  wire        tb_match = match_found && match_hits;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_found) begin
      if (stats1.errors_found == 0) stats1.errortime_found = $time;
      stats1.errors_found = stats1.errors_found + 1;
    end
    if (!match_hits) begin
      if (stats1.errors_hits == 0) stats1.errortime_hits = $time;
      stats1.errors_hits = stats1.errors_hits + 1;
    end
  end

  reg [39:0] stream;
  integer i;
  initial begin
    areset <= 1'b1;
    valid <= 1'b0;
    bit_in <= 1'b1;
    repeat (2) @(negedge clk);
    areset <= 1'b0;
    // Overlaps, long runs of ones, near misses.
    stream = 40'b1101101101_0111101100_1110111011_0100110101;
    for (i = 39; i >= 0; i = i - 1) begin
      valid <= 1'b1;
      bit_in <= stream[i];
      @(negedge clk);
    end
    // The same with pauses in which the input is misleading.
    for (i = 39; i >= 0; i = i - 1) begin
      valid <= 1'b1;
      bit_in <= stream[i];
      @(negedge clk);
      valid <= 1'b0;
      bit_in <= $random;
      repeat ($random & 1) @(negedge clk);
    end
    // A reset after each part of the pattern, just before its last bit.
    for (i = 0; i < 4; i = i + 1) begin
      valid <= 1'b1;
      bit_in <= 1'b1;
      repeat (2) @(negedge clk);
      bit_in <= 1'b0;
      @(negedge clk);
      valid <= 1'b0;
      areset <= ~i[0];
      @(negedge clk) areset <= 1'b0;
      valid <= 1'b1;
      bit_in <= 1'b1;
      @(negedge clk);
    end
    repeat (500) begin
      valid <= ($urandom & 7) != 0;
      bit_in <= ($random % 3) != 0;
      areset <= ($urandom & 31) == 0;
      @(negedge clk);
    end
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_found != 0)
      $display("Hint: Output 'found' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_found, stats1.errortime_found);
    else
      $display("Hint: Output 'found' has no mismatches.");
    if (stats1.errors_hits != 0)
      $display("Hint: Output 'hits' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_hits, stats1.errortime_hits);
    else
      $display("Hint: Output 'hits' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
